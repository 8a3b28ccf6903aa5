import { Worker } from 'node:worker_threads';
import { PlatformError } from '../../../kit/errors.ts';
import { entryFile } from '../../../kit/paths.ts';
import { storeError } from '../store-error.ts';
import type { CommitterReply, CommitterStart, PackedUnit, PackedValue, SqlValue, Unit } from './protocol.ts';

export interface Committer {
  /** Settles once `unit` is on disk; units of one moment share a transaction. Throws STORE_ERROR, and what SQLite says of the unit. */
  write(unit: Unit): Promise<{ changes: number; rowid: number }>;
  /** Commits what is queued, then ends the thread. */
  close(): Promise<void>;
}

interface Queued {
  unit: Unit;
  resolve(result: { changes: number; rowid: number }): void;
  reject(error: unknown): void;
}

/** A longer queue is cut, so that the first of it need not wait for the last. */
const LARGEST_BATCH = 512;
/**
 * A batch of fewer waits a millisecond for more where there is company: handlers that senders wait for end one by one,
 * and commits of two or three writes each were a sixth of what such a delivery cost.
 */
const SMALL_BATCH = 8;
const GATHER_MS = 1;
/** Company: so many writes in the last batch and the one that gathers. */
const COMPANY = 4;

/**
 * Commits on a thread of its own. A commit at `synchronous=FULL` waits for the disk, one to three milliseconds, and on
 * the main thread nobody is served meanwhile: that was 40 % of a busy gateway's time. While one batch is being written
 * the next gathers, so batches grow with the load by themselves.
 */
export function startCommitter(start: CommitterStart): Committer {
  const worker = new Worker(entryFile('committer'), { workerData: start, execArgv: [] });
  // Idle, it must not keep a process alive; `busy` does while something is to be written.
  worker.unref();
  let queue: Queued[] = [];
  let underWay: Queued[] | undefined;
  let failure: unknown;
  let whenIdle: Array<() => void> = [];
  let gathering: NodeJS.Timeout | undefined;

  function next(): void {
    clearTimeout(gathering);
    gathering = undefined;
    if (underWay || failure) return;
    if (queue.length === 0) {
      worker.unref();
      for (const tell of whenIdle) tell();
      whenIdle = [];
      return;
    }
    const batch = queue.slice(0, LARGEST_BATCH);
    queue = queue.slice(LARGEST_BATCH);
    underWay = batch;
    worker.ref();
    const request = pack(batch.map(({ unit }) => unit));
    worker.postMessage(request, [request.bytes]);
  }

  function fail(error: unknown): void {
    failure ??= storeError(start.file, error);
    for (const { reject } of [...(underWay ?? []), ...queue]) reject(failure);
    underWay = undefined;
    queue = [];
    for (const tell of whenIdle) tell();
  }

  worker.on('message', ({ results, failures }: CommitterReply) => {
    const batch = underWay!;
    underWay = undefined;
    for (const [place, { message, code }] of failures) {
      const error = Object.assign(new Error(message), code === undefined ? {} : { code });
      batch[place]!.reject(storeError(start.file, error));
    }
    // Settling what was rejected changes nothing.
    for (let i = 0; i < batch.length; i++)
      batch[i]!.resolve({ changes: results[2 * i]!, rowid: results[2 * i + 1]! });
    const isWorthwhile =
      queue.length > 0 && queue.length < SMALL_BATCH && batch.length + queue.length >= COMPANY;
    if (isWorthwhile) gathering = setTimeout(next, GATHER_MS);
    else next();
  });
  worker.on('error', (error) => {
    fail(error);
    // Without it nothing can be written any more: the supervisor is to start the service anew.
    setImmediate(() => {
      throw error;
    });
  });
  worker.on('exit', () => fail(endedError(start.file)));

  return {
    write: (unit) =>
      new Promise((resolve, reject) => {
        if (failure) {
          reject(failure);
          return;
        }
        queue.push({ unit, resolve, reject });
        // The rest of this turn's writes come along.
        if (!underWay && queue.length === (gathering ? SMALL_BATCH : 1)) setImmediate(next);
      }),
    async close() {
      if (underWay || queue.length > 0) await new Promise<void>((resolve) => whenIdle.push(resolve));
      if (!failure) {
        failure = endedError(start.file);
        const ended = new Promise((resolve) => worker.once('exit', resolve));
        worker.ref();
        worker.postMessage({ close: true });
        await ended;
      }
    },
  };
}

function endedError(file: string): PlatformError {
  return new PlatformError('STORE_ERROR', `${file} is closed: its service is stopping.`, {
    details: { file },
  });
}

/**
 * Puts the bytes of a batch into one piece of memory that is handed over: a buffer for each would cost more than its copy,
 * and a slice of node's pool would take the whole pool along.
 */
function pack(units: readonly Unit[]): { units: string; bytes: ArrayBuffer } {
  const parts: Uint8Array[] = [];
  let length = 0;
  const place = (value: SqlValue): PackedValue => {
    if (!(value instanceof Uint8Array)) return value;
    parts.push(value);
    length += value.byteLength;
    return [length - value.byteLength, value.byteLength];
  };
  const packed = units.map(({ guarded, steps }): PackedUnit => {
    const unit: Array<number | readonly PackedValue[]> = [];
    for (const [statement, values] of steps) unit.push(statement, values.map(place));
    return [guarded ? 1 : 0, ...unit];
  });
  const bytes = new Uint8Array(length);
  let offset = 0;
  for (const part of parts) {
    bytes.set(part, offset);
    offset += part.byteLength;
  }
  return { units: JSON.stringify(packed), bytes: bytes.buffer };
}
