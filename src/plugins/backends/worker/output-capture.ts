import type { Readable } from 'node:stream';
import { StringDecoder } from 'node:string_decoder';
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

/**
 * Splits the output of a process into lines. Long lines are truncated, so that memory use is bounded. Empty lines are
 * left out. `onBytes` gets the size of all output.
 */
export function captureOutput(
  stream: Readable,
  clock: Clock,
  onLine: (line: string) => void,
  onBytes: (bytes: number) => void = () => {},
): OutputCapture {
  const decoder = new StringDecoder('utf8');
  const bucket = createTokenBucket(clock, BYTES_PER_SECOND, BYTES_AT_ONCE);
  let line = '';
  let isCut = false;
  let tail = '';

  function endLine(): void {
    if (line !== '') onLine(isCut ? `${line}…` : line);
    line = '';
    isCut = false;
  }

  function take(text: string): void {
    tail = (tail + text.slice(-TAIL_CHARS)).slice(-TAIL_CHARS);
    const pieces = text.split('\n');
    for (const [index, piece] of pieces.entries()) {
      isCut ||= line.length + piece.length > LINE_CHARS;
      line += piece.slice(0, LINE_CHARS - line.length);
      if (index < pieces.length - 1) endLine();
    }
  }

  stream.on('data', (chunk: Buffer) => {
    onBytes(chunk.length);
    take(decoder.write(chunk));
    const waitMs = bucket.spend(chunk.length);
    if (waitMs > 0) {
      stream.pause();
      clock.after(waitMs, () => stream.resume());
    }
  });
  stream.on('end', () => {
    take(decoder.end());
    endLine();
  });
  stream.on('error', () => {});
  return { tail: () => tail };
}
