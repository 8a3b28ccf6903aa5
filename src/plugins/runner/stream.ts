import { isStreamResult, STREAM_CONTENT_TYPE, type StreamResult } from '../../contracts/stream-result.ts';
import { createStreamCredit, type StreamCredit } from '../stream-credit.ts';
import type { Channel } from './channel.ts';
import { RunnerFailure } from './failure.ts';

/** A piece as it crosses the channel; smaller ones than the window keep it moving. */
const PIECE_BYTES = 32 * 1024;

/** The stream that a handler returned, by itself or as the result of a success. */
export function streamOf(value: unknown): StreamResult | undefined {
  if (isStreamResult(value)) return value;
  const { exitCode, result } = (value ?? {}) as { exitCode?: unknown; result?: unknown };
  return exitCode === 0 && isStreamResult(result) ? result : undefined;
}

export interface Streams {
  /** Sends every piece, no faster than the daemon asks for; resolves when the source ends. */
  send(executionId: string, stream: StreamResult, signal: AbortSignal): Promise<void>;
  /** The daemon has room for so many bytes more. */
  pull(executionId: string, bytes: number): void;
}

export function createStreams(channel: Channel): Streams {
  const credits = new Map<string, StreamCredit>();

  return {
    async send(executionId, { contentType, source }, signal) {
      if (!STREAM_CONTENT_TYPE.test(contentType)) {
        throw new RunnerFailure('EXECUTION_ERROR', `The stream's content type "${contentType}" is none.`);
      }
      // Told while its caller can still be answered by an error.
      if (!isIterable(source))
        throw new RunnerFailure('EXECUTION_ERROR', 'A stream wants an iterable source.');
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
  throw new RunnerFailure('EXECUTION_ERROR', 'A stream must give texts or bytes (Uint8Array).');
}
