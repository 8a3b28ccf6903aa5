import type { Readable } from 'node:stream';
import { createTokenBucket } from '../../../kit/limits/token-bucket.ts';
import type { Clock } from '../../../kit/time/clock.ts';

const LINE_CHARS = 4 * 1024;
const TAIL_CHARS = 4 * 1024;
/** Maximum read rate in bytes per second. Faster output fills the pipe and blocks only the writing process. */
const BYTES_PER_SECOND = 32 * 1024 * 1024;
const BYTES_AT_ONCE = 4 * 1024 * 1024;

export interface OutputCapture {
  /** Returns the last part of the output. */
  tail(): string;
}

/** Splits the output of a process into lines. Long lines are truncated, so that memory use is bounded. */
export function captureOutput(stream: Readable, clock: Clock, onLine: (line: string) => void): OutputCapture {
  const bucket = createTokenBucket(clock, BYTES_PER_SECOND, BYTES_AT_ONCE);
  let line = '';
  let isCut = false;
  let tail = '';

  function endLine(): void {
    if (line !== '') onLine(isCut ? `${line}…` : line);
    line = '';
    isCut = false;
  }

  stream.setEncoding('utf8');
  stream.on('data', (text: string) => {
    tail = (tail + text.slice(-TAIL_CHARS)).slice(-TAIL_CHARS);
    const pieces = text.split('\n');
    for (const [index, piece] of pieces.entries()) {
      isCut ||= line.length + piece.length > LINE_CHARS;
      line += piece.slice(0, LINE_CHARS - line.length);
      if (index < pieces.length - 1) endLine();
    }
    const waitMs = bucket.spend(text.length);
    if (waitMs > 0) {
      stream.pause();
      clock.after(waitMs, () => stream.resume());
    }
  });
  stream.on('end', endLine);
  stream.on('error', () => {});
  return { tail: () => tail };
}
