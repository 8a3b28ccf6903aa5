import { STREAM_CONTENT_TYPE } from '../../../contracts/stream-result.ts';
import type { Clock } from '../../../kit/clock.ts';
import { hours } from '../../../kit/duration.ts';
import type { StreamSink } from '../../execution.ts';

/** What may be under way between a process and its reader: all the memory a stream costs us. */
const WINDOW_BYTES = 256 * 1024;
/** No stream is longer, whatever moves on it: its process is lost to others meanwhile. */
const LONGEST_MS = hours(1);

export interface OpenStreamDeps {
  sink: StreamSink;
  clock: Clock;
  /** Asks the process for so many bytes more. */
  pull(bytes: number): void;
  /** Neither end may take longer than this for the next piece. */
  idleMs: number;
  /** How much may be under way; default 256 KiB. */
  windowBytes?: number;
  onTimeout(): void;
}

export interface OpenStream {
  /** False when the process sent what it was not asked for. */
  take(piece: Buffer): boolean;
  /** Resolves once the caller has everything. */
  readonly drained: Promise<void>;
  close(): void;
}

/** One stream from a process to a caller, no faster than the caller takes it. Undefined for a content type that is none. */
export function openStream(contentType: string, deps: OpenStreamDeps): OpenStream | undefined {
  const { sink, clock, pull, idleMs, onTimeout, windowBytes = WINDOW_BYTES } = deps;
  if (contentType.length > 256 || !STREAM_CONTENT_TYPE.test(contentType)) return undefined;
  let credit = windowBytes;
  let drained = Promise.resolve();
  let isClosed = false;
  let stopIdle = clock.after(idleMs, onTimeout);
  const stopLongest = clock.after(LONGEST_MS, onTimeout);

  function moved(): void {
    stopIdle();
    stopIdle = clock.after(idleMs, onTimeout);
  }
  function makeRoom(bytes: number): void {
    if (isClosed) return;
    credit += bytes;
    moved();
    pull(bytes);
  }
  sink.start(contentType);
  pull(credit);
  return {
    take(piece) {
      if (piece.length === 0 || piece.length > credit) return false;
      credit -= piece.length;
      moved();
      drained = drained.then(() => sink.write(piece)).then(() => makeRoom(piece.length));
      // Who writes into a connection that is gone learns of it by the caller's abort.
      drained.catch(() => {});
      return true;
    },
    get drained() {
      return drained;
    },
    close() {
      isClosed = true;
      stopIdle();
      stopLongest();
    },
  };
}
