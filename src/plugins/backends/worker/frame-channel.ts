import type { Duplex } from 'node:stream';
import { systemClock } from '../../../kit/clock.ts';
import { messageOf } from '../../../kit/errors.ts';
import { answerTimes } from '../../../kit/json-cost.ts';
import { createTokenBucket } from '../../../kit/token-bucket.ts';
import { createLineReader } from '../../line-reader.ts';
import type { ToRunner } from '../../runner/protocol.ts';
import { parseUntrusted } from '../../untrusted-json.ts';
import { asFrame, type RawFrame } from './frames.ts';

/** Replies a process has not read yet; one that stops reading is ended. */
const MAX_UNREAD_BYTES = 64 * 1024 * 1024;

/**
 * What reading one process's frames may cost us: bytes a second, each frame counting as a kilobyte more and
 * each one that means nothing as sixteen. Beyond it the channel is not read for a while, so that a plugin
 * that floods it slows itself and nobody else.
 */
const COST_PER_SECOND = 64 * 1024 * 1024;
const COST_AT_ONCE = 32 * 1024 * 1024;
const FRAME_COST = 1024;
const EMPTY_FRAME_COST = 16 * 1024;

/**
 * Large frames are charged by the time they really take: what one may hold can keep us for 0.2 s.
 * A process that keeps sending such gets a quarter of our time at most.
 */
const LARGE_CHARS = 64 * 1024;
const LARGE_MS_PER_SECOND = 250;
const LARGE_MS_AT_ONCE = 500;

export interface FrameChannelEvents {
  /** Takes a frame and its length in characters; false when it meant nothing. */
  onFrame(frame: RawFrame, length: number): boolean;
  /** Characters of the largest input that a running call was given: its answer may hold as much. */
  inputChars(): number;
  /** The process broke the protocol: the text completes "it …". No frame is read afterwards. */
  onFault(what: string): void;
}

export interface FrameChannel {
  send(frame: ToRunner): void;
  /** Sends a frame that is a line already. */
  sendLine(line: string): void;
}

/** Reads and writes the frames of one untrusted process with bounded memory and bounded time. */
export function openFrameChannel(stream: Duplex, maxBytes: number, events: FrameChannelEvents): FrameChannel {
  const budget = createTokenBucket(systemClock, COST_PER_SECOND, COST_AT_ONCE);
  const timeBudget = createTokenBucket(systemClock, LARGE_MS_PER_SECOND, LARGE_MS_AT_ONCE);
  const reader = createLineReader(maxBytes, readLine);
  let cost = 0;
  let costMs = 0;
  let isFaulty = false;

  function fault(what: string): void {
    if (isFaulty) return;
    isFaulty = true;
    events.onFault(what);
  }

  function readLine(line: string): void {
    if (isFaulty) return;
    cost += FRAME_COST;
    const startedAt = line.length > LARGE_CHARS ? performance.now() : undefined;
    let frame: RawFrame | undefined;
    try {
      frame = asFrame(parseUntrusted(line, answerTimes(events.inputChars())));
    } catch (error) {
      fault(`sent a frame that cannot be read (${messageOf(error).slice(0, 200)})`);
      return;
    }
    if (!frame || !events.onFrame(frame, line.length)) cost += EMPTY_FRAME_COST;
    if (startedAt !== undefined) costMs += performance.now() - startedAt;
  }

  stream.on('error', () => {});
  stream.on('data', (chunk: Buffer) => {
    if (isFaulty) return;
    cost = chunk.length;
    costMs = 0;
    if (!reader.push(chunk)) return fault(`sent a frame of more than ${maxBytes} bytes`);
    const waitMs = Math.max(budget.spend(cost), costMs > 0 ? timeBudget.spend(costMs) : 0);
    if (waitMs === 0) return;
    stream.pause();
    systemClock.after(waitMs, () => stream.resume());
  });

  function sendLine(line: string): void {
    if (!stream.writable || isFaulty) return;
    stream.write(line);
    if (stream.writableLength > MAX_UNREAD_BYTES) fault('did not read what the platform answered');
  }
  return { sendLine, send: (frame) => sendLine(`${JSON.stringify(frame)}\n`) };
}
