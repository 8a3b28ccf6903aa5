import { isStreamResult, STREAM_CONTENT_TYPE, type StreamResult } from '../../contracts/stream-result.ts';
import { createStreamCredit, type StreamCredit } from '../stream-credit.ts';
import type { Channel } from './channel.ts';
import { RunnerFailure } from './failure.ts';

/**
 * Size of a chunk on the channel. Chunks are smaller than the credit window, so that several chunks can be in flight.
 */
const PIECE_BYTES = 32 * 1024;

/**
 * Returns the stream in a handler's return value. The stream is the value itself, or the `result` of a successful
 * CommandResult.
 */
export function streamOf(value: unknown): StreamResult | undefined {
  if (isStreamResult(value)) return value;
  const { exitCode, result } = (value ?? {}) as { exitCode?: unknown; result?: unknown };
  return exitCode === 0 && isStreamResult(result) ? result : undefined;
}

export interface Streams {
  /** Sends the chunks of a stream within the granted credit. Resolves when the source ends. */
  send(executionId: string, stream: StreamResult, signal: AbortSignal): Promise<void>;
  /** Allows the execution's stream to send `bytes` more bytes. */
  pull(executionId: string, bytes: number): void;
}

export function createStreams(channel: Channel): Streams {
  const credits = new Map<string, StreamCredit>();

  return {
    async send(executionId, { contentType, source }, signal) {
      if (!STREAM_CONTENT_TYPE.test(contentType)) {
        throw new RunnerFailure('EXECUTION_ERROR', `The stream's content type "${contentType}" is invalid.`);
      }
      // Checks the source before the stream starts, because the caller cannot receive an error after the start.
      if (!isIterable(source))
        throw new RunnerFailure('EXECUTION_ERROR', 'The source of a stream must be iterable.');
      const credit = createStreamCredit(signal);
      credits.set(executionId, credit);
      try {
        channel.send({ type: 'stream', executionId, contentType });
        for await (const item of source) {
          const bytes = toBytes(item);
          for (let at = 0; at < bytes.length; at += PIECE_BYTES) {
            const piece = bytes.subarray(at, at + PIECE_BYTES);
            await credit.take(piece.length);
            channel.send({ type: 'chunk', executionId, data: piece.toString('base64') });
          }
          signal.throwIfAborted();
        }
      } finally {
        credits.delete(executionId);
      }
    },
    pull(executionId, bytes) {
      credits.get(executionId)?.grant(bytes);
    },
  };
}

function isIterable(source: unknown): boolean {
  const { [Symbol.asyncIterator]: pulled, [Symbol.iterator]: given } = Object(source) as Partial<
    AsyncIterable<unknown> & Iterable<unknown>
  >;
  return typeof pulled === 'function' || typeof given === 'function';
}

function toBytes(item: unknown): Buffer {
  if (typeof item === 'string') return Buffer.from(item);
  if (item instanceof Uint8Array) return Buffer.from(item.buffer, item.byteOffset, item.byteLength);
  throw new RunnerFailure('EXECUTION_ERROR', 'A stream must yield strings or bytes (Uint8Array).');
}
