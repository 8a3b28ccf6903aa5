import { Worker } from 'node:worker_threads';
import { PlatformError } from '../../../../kit/errors/errors.ts';
import { entryFile } from '../../../../kit/files/paths.ts';
import { storeError } from '../../store-error.ts';
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

/** Handle of the committer thread. */
export interface CommitterThread {
  /** Resolves once the journal of an earlier process is applied. Throws STORE_ERROR or SQLite's error. */
  ready: Promise<Recovered>;
  /** Commits a batch. Throws STORE_ERROR when the thread has ended. */
  commit(batch: { units: string; bytes: ArrayBuffer }): Promise<BatchReply>;
  /** Applies a range of the journal to the database. Throws as `commit` does. */
  apply(range: JournalRange): Promise<Applied>;
  /** Reads markers for the in-memory index. Throws as `commit` does. */
  markers(range: MarkerRange): Promise<MarkersReply>;
  /** Stops waiting for locks: an operation that needs to wait fails instead. */
  stopWaiting(): void;
  /** Ends the thread once all earlier requests are done. */
  close(): Promise<void>;
}

/** How much of the journal is applied, and the error that stopped it: STORE_ERROR or SQLite's error. */
export interface Applied {
  applied: number;
  failure: unknown;
}

interface Pending {
  resolve(reply: never): void;
  reject(error: unknown): void;
}

/**
 * Commits on a thread of its own. A commit at `synchronous=FULL` waits one to three milliseconds for the
 * disk; on the main thread, that blocked a busy gateway 40 % of the time.
 */
export function startCommitterThread(start: Omit<CommitterStart, 'stopWaiting'>): CommitterThread {
  const stopWaiting = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT));
  const workerData: CommitterStart = { ...start, stopWaiting };
  const worker = new Worker(entryFile('committer'), { workerData, execArgv: [] });
  const pending: Pending[] = [];
  let failure: unknown;
  const began = Promise.withResolvers<Recovered>();
  // Later requests report a failed start, so this rejection need not be handled.
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

  /** SQLite errors concern the database; any other error concerns the journal file being read. */
  const failureIn = (read: string, failure: Failure): unknown =>
    storeError(failure.code?.startsWith('SQLITE_') ? start.file : read, errorOf(failure));

  worker.on('message', (message: Ready | BatchReply | ApplyReply | MarkersReply) => {
    if (!hasBegun) {
      hasBegun = true;
      const begin = message as Ready;
      if ('failure' in begin) began.reject(failureIn(start.recover ?? start.file, begin.failure));
      else began.resolve(begin.ready);
    } else pending.shift()!.resolve(message as never);
    // The thread keeps the process alive only while it starts or has requests.
    if (pending.length === 0 && !failure) worker.unref();
  });
  worker.on('error', (error) => {
    fail(error);
    // The process cannot write without this thread: crash, so that the supervisor restarts the service.
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
    stopWaiting: () => void Atomics.store(stopWaiting, 0, 1),
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

/** Restores an error that the thread sent. */
export function errorOf({ message, code }: Failure): Error {
  return Object.assign(new Error(message), code === undefined ? {} : { code });
}

export function endedError(file: string): PlatformError {
  return new PlatformError('STORE_ERROR', `${file} is closed: its service is stopping.`, {
    details: { file },
  });
}
