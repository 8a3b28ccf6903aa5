import { STREAM_CONTENT_TYPE } from '../../../contracts/stream-result.ts';
import type { Clock } from '../../../kit/time/clock.ts';
import { hours } from '../../../kit/time/duration.ts';
import type { StreamSink } from '../../execution.ts';

/**
 * Maximum bytes in flight between a process and its reader. The limit bounds the memory that a stream uses in this
 * service.
 */
const WINDOW_BYTES = 256 * 1024;
/** Maximum duration of a stream, because each stream occupies a slot of its process. */
const MAX_STREAM_MS = hours(1);

export interface OpenStreamDeps {
  sink: StreamSink;
  clock: Clock;
  /** Requests `bytes` more bytes from the process. */
  pull(bytes: number): void;
  /** Time limit per chunk, in ms. The limit applies to the process that sends the chunk and to the reader. */
  idleMs: number;
  /** Maximum bytes in flight between the process and the reader. The default is 256 KiB. */
  windowBytes?: number;
  onTimeout(): void;
}

export interface OpenStream {
  /** Forwards a chunk to the reader. Returns false if the process sent more than was requested. */
  take(piece: Buffer): boolean;
  /** Resolves when the reader has taken all chunks received so far. */
  readonly drained: Promise<void>;
  close(): void;
}

/** Forwards a process's stream to its reader, at the reader's pace. Returns undefined for an invalid content type. */
export function openStream(contentType: string, deps: OpenStreamDeps): OpenStream | undefined {
  const { sink, clock, pull, idleMs, onTimeout, windowBytes = WINDOW_BYTES } = deps;
  if (contentType.length > 256 || !STREAM_CONTENT_TYPE.test(contentType)) return undefined;
  let credit = windowBytes;
  let drained = Promise.resolve();
  let isClosed = false;
  let stopIdle = clock.after(idleMs, onTimeout);
  const stopLongest = clock.after(MAX_STREAM_MS, onTimeout);

  function moved(): void {
    stopIdle();
    stopIdle = clock.after(idleMs, onTimeout);
  }
  function addCredit(bytes: number): void {
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
      drained = drained.then(() => sink.write(piece)).then(() => addCredit(piece.length));
      // The call's abort signal already reports that the reader disconnected, so a failed write is ignored.
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
