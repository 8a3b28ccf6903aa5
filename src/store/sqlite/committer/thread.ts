import { Worker } from 'node:worker_threads';
import { PlatformError } from '../../../kit/errors.ts';
import { entryFile } from '../../../kit/paths.ts';
import { storeError } from '../store-error.ts';
import type {
  ApplyReply,
  BatchReply,
  CommitterRequest,
  CommitterStart,
  Failure,
  JournalRange,
  MarkerRange,
  MarkersReply,
  Ready,
  Recovered,
} from './protocol.ts';

/** The thread that commits, as the others of its process see it. */
export interface CommitterThread {
  /** Once what an earlier process left is applied. Throws STORE_ERROR, and what SQLite says. */
  ready: Promise<Recovered>;
  /** Commits a batch. Throws STORE_ERROR when there is no thread any more. */
  commit(batch: { units: string; bytes: ArrayBuffer }): Promise<BatchReply>;
  /** Moves a stretch of the journal into the database. Throws as `commit` does. */
  apply(range: JournalRange): Promise<Applied>;
  /** Reads markers for the index in memory. Throws as `commit` does. */
  markers(range: MarkerRange): Promise<MarkersReply>;
  /** From now on it waits for nobody's lock: what it works on fails where it would have to. */
  hurry(): void;
  /** Ends the thread once all that was asked before is done. */
  close(): Promise<void>;
}

/** How far the database has come, and what kept it from coming further: STORE_ERROR, or what SQLite says. */
export interface Applied {
  applied: number;
  failure: unknown;
}

interface Pending {
  resolve(reply: never): void;
  reject(error: unknown): void;
}

/**
 * Commits on a thread of its own. A commit at `synchronous=FULL` waits for the disk, one to three milliseconds, and on
 * the main thread nobody is served meanwhile: that was 40 % of a busy gateway's time.
 */
export function startCommitterThread(start: Omit<CommitterStart, 'hurry'>): CommitterThread {
  const hurry = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT));
  const workerData: CommitterStart = { ...start, hurry };
  const worker = new Worker(entryFile('committer'), { workerData, execArgv: [] });
  const pending: Pending[] = [];
  let failure: unknown;
  const began = Promise.withResolvers<Recovered>();
  // Whoever does not wait for it learns of a failure by what he asks.
  began.promise.catch(() => {});
  let hasBegun = false;

  function fail(error: unknown): void {
    failure ??= storeError(start.file, error);
    began.reject(failure);
    for (const { reject } of pending.splice(0)) reject(failure);
  }

  function ask<Reply>(request: CommitterRequest, transfer: ArrayBuffer[] = []): Promise<Reply> {
    return new Promise<Reply>((resolve, reject) => {
      if (failure) {
        reject(failure);
        return;
      }
      pending.push({ resolve, reject });
      worker.ref();
      worker.postMessage(request, transfer);
    });
  }

  /** What SQLite says is of the database, the rest of a file that was read for it. */
  const failureIn = (read: string, failure: Failure): unknown =>
    storeError(failure.code?.startsWith('SQLITE_') ? start.file : read, errorOf(failure));

  worker.on('message', (message: Ready | BatchReply | ApplyReply | MarkersReply) => {
    if (!hasBegun) {
      hasBegun = true;
      const begin = message as Ready;
      if ('failure' in begin) began.reject(failureIn(start.recover ?? start.file, begin.failure));
      else began.resolve(begin.ready);
    } else pending.shift()!.resolve(message as never);
    // Idle, it must not keep a process alive; it does while it begins and while something is asked of it.
    if (pending.length === 0 && !failure) worker.unref();
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
    ready: began.promise,
    commit: (batch) => ask({ ...batch }, [batch.bytes]),
    async apply(range) {
      const { applied, failure } = await ask<ApplyReply>({ apply: range });
      return { applied, failure: failure && failureIn(range.file, failure) };
    },
    async markers(range) {
      const reply = await ask<MarkersReply>({ markers: range });
      if (reply.failure) throw storeError(start.file, errorOf(reply.failure));
      return reply;
    },
    hurry: () => void Atomics.store(hurry, 0, 1),
    async close() {
      if (failure) return;
      failure = endedError(start.file);
      const ended = new Promise((resolve) => worker.once('exit', resolve));
      worker.ref();
      worker.postMessage({ close: true });
      await ended;
    },
  };
}

/** What a failure of the thread is here. */
export function errorOf({ message, code }: Failure): Error {
  return Object.assign(new Error(message), code === undefined ? {} : { code });
}

export function endedError(file: string): PlatformError {
  return new PlatformError('STORE_ERROR', `${file} is closed: its service is stopping.`, {
    details: { file },
  });
}
