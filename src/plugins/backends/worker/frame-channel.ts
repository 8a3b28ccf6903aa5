import process from 'node:process';
import type { Duplex } from 'node:stream';
import { resultLimitFactor } from '../../../kit/data/json-cost.ts';
import { messageOf } from '../../../kit/errors/errors.ts';
import { createTokenBucket } from '../../../kit/limits/token-bucket.ts';
import { systemClock } from '../../../kit/time/clock.ts';
import { createLineReader } from '../../line-reader.ts';
import type { ToRunner } from '../../runner/protocol.ts';
import { parseUntrusted } from '../../untrusted-json.ts';
import { asFrame, type RawFrame } from './frames.ts';

/** Maximum bytes of replies that a process has not read yet. Processes that exceed this limit are ended. */
const MAX_UNREAD_BYTES = 64 * 1024 * 1024;
/** Frames that were sent in the same turn are joined to one write up to this length, in characters. */
const MAX_JOINED_CHARS = 256 * 1024;

/**
 * Read budget of one process in bytes per second. Each frame costs its size plus 1 KiB. Reading pauses when the budget
 * is used up, so that a flood of frames slows down only its sender.
 */
const COST_PER_SECOND = 64 * 1024 * 1024;
const COST_AT_ONCE = 32 * 1024 * 1024;
const FRAME_COST = 1024;
const INVALID_FRAME_COST = 16 * 1024;

/**
 * Frames longer than this limit have a time budget for parsing. One process can then use at most a quarter of this
 * thread's time.
 */
const LARGE_CHARS = 64 * 1024;
const LARGE_MS_PER_SECOND = 250;
const LARGE_MS_AT_ONCE = 500;

export interface FrameChannelEvents {
  /** Handles a frame of `length` characters. Returns false if the frame is invalid. */
  onFrame(frame: RawFrame, length: number): boolean;
  /**
   * Returns the length of the largest input of a running call, in characters. Large inputs raise the limits for
   * results.
   */
  inputChars(): number;
  /**
   * Callback that is called on the first protocol violation, with a text such as "sent an invalid frame". Later frames
   * are ignored.
   */
  onFault(what: string): void;
}

export interface FrameChannel {
  send(frame: ToRunner): void;
  /** Sends a serialized frame, which must end with a line break. */
  sendLine(line: string): void;
  /** Discards unwritten and later frames. A failed write would lose frames of the process that were not read yet. */
  stopSending(): void;
  /** Whether all frames that the process has sent were handled. False until the process has ended. */
  readonly isReadToEnd: boolean;
}

/** Reads and writes the frames of one untrusted process with bounded memory and time. */
export function openFrameChannel(stream: Duplex, maxBytes: number, events: FrameChannelEvents): FrameChannel {
  const budget = createTokenBucket(systemClock, COST_PER_SECOND, COST_AT_ONCE);
  const timeBudget = createTokenBucket(systemClock, LARGE_MS_PER_SECOND, LARGE_MS_AT_ONCE);
  const reader = createLineReader(maxBytes, readLine);
  let cost = 0;
  let costMs = 0;
  let isFaulty = false;
  let isReadToEnd = false;
  let isSending = true;
  let unsent = '';

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
      frame = asFrame(parseUntrusted(line, resultLimitFactor(events.inputChars())));
    } catch (error) {
      fault(`sent a frame that cannot be read (${messageOf(error).slice(0, 200)})`);
      return;
    }
    if (!frame || !events.onFrame(frame, line.length)) cost += INVALID_FRAME_COST;
    if (startedAt !== undefined) costMs += performance.now() - startedAt;
  }

  stream.on('end', () => {
    isReadToEnd = true;
  });
  stream.on('error', ({ syscall }: NodeJS.ErrnoException) => {
    // Reading fails after the last frame if the process has not read all of its frames.
    isReadToEnd ||= syscall === 'read';
  });
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

  function flush(): void {
    const text = unsent;
    unsent = '';
    if (text === '' || !isSending || !stream.writable || isFaulty) return;
    stream.write(text);
    if (stream.writableLength > MAX_UNREAD_BYTES) fault('did not read what the platform answered');
  }
  function sendLine(line: string): void {
    if (unsent === '') process.nextTick(flush);
    unsent += line;
    if (unsent.length > MAX_JOINED_CHARS) flush();
  }
  return {
    sendLine,
    send: (frame) => sendLine(`${JSON.stringify(frame)}\n`),
    stopSending() {
      isSending = false;
    },
    get isReadToEnd() {
      return isReadToEnd && !isFaulty;
    },
  };
}
