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

/** Sequence number of the last applied frame, and the error if a frame could not be applied. */
export interface Applied {
  applied: number;
  failure: unknown;
}

type Message = Ready | BatchReply | ApplyReply | MarkersReply;

interface Pending {
  resolve(reply: unknown): void;
  reject(error: unknown): void;
}

/** Client of the committer thread. A commit waits one to three ms for the disk, which would block an event loop. */
export class CommitterThread {
  readonly #start: Omit<CommitterStart, 'stopWaiting'>;
  readonly #stopWaiting = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT));
  readonly #worker: Worker;
  readonly #pending: Pending[] = [];
  readonly #began = Promise.withResolvers<Recovered>();
  #hasBegun = false;
  #failure: unknown;

  constructor(start: Omit<CommitterStart, 'stopWaiting'>) {
    this.#start = start;
    const workerData: CommitterStart = { ...start, stopWaiting: this.#stopWaiting };
    this.#worker = new Worker(entryFile('committer'), { workerData, execArgv: [] });
    // Every later request reports a failed start, so this rejection needs no handler.
    this.#began.promise.catch(() => {});
    this.#worker.on('message', (message: Message) => this.#receive(message));
    this.#worker.on('error', (error) => {
      this.#fail(error);
      // The process cannot write without this thread. The error is thrown to crash the process, which the supervisor
      // then restarts.
      setImmediate(() => {
        throw error;
      });
    });
    this.#worker.on('exit', () => this.#fail(endedError(start.file)));
  }

  /**
   * Resolves once the thread has started and has applied the journal of an earlier process, if there is one to recover.
   * Rejects with STORE_ERROR or an SQLite error.
   */
  get ready(): Promise<Recovered> {
    return this.#began.promise;
  }

  /** Commits a batch. Rejects with STORE_ERROR if the thread has ended. */
  commit(batch: { units: string; bytes: ArrayBuffer }): Promise<BatchReply> {
    return this.#request({ ...batch }, [batch.bytes]);
  }

  async apply(range: JournalRange): Promise<Applied> {
    const { applied, failure } = await this.#request<ApplyReply>({ apply: range });
    return { applied, failure: failure && this.#errorIn(range.file, failure) };
  }

  async markers(range: MarkerRange): Promise<MarkersReply> {
    const reply = await this.#request<MarkersReply>({ markers: range });
    if (reply.failure) throw storeError(this.#start.file, errorOf(reply.failure));
    return reply;
  }

  /** Makes all requests that wait for a locked database fail. */
  stopWaiting(): void {
    Atomics.store(this.#stopWaiting, 0, 1);
  }

  /** Ends the thread after all earlier requests are answered. */
  async close(): Promise<void> {
    if (this.#failure) return;
    this.#failure = endedError(this.#start.file);
    const ended = new Promise((resolve) => this.#worker.once('exit', resolve));
    this.#worker.ref();
    this.#worker.postMessage({ close: true });
    await ended;
  }

  #request<Reply>(request: CommitterRequest, transfer: ArrayBuffer[] = []): Promise<Reply> {
    return new Promise<Reply>((resolve, reject) => {
      if (this.#failure) {
        reject(this.#failure);
        return;
      }
      this.#pending.push({ resolve: resolve as Pending['resolve'], reject });
      this.#worker.ref();
      this.#worker.postMessage(request, transfer);
    });
  }

  #receive(message: Message): void {
    if (!this.#hasBegun) {
      this.#hasBegun = true;
      this.#begin(message as Ready);
    } else this.#pending.shift()!.resolve(message);
    // The thread keeps the process alive only while the thread starts or answers requests.
    if (this.#pending.length === 0 && !this.#failure) this.#worker.unref();
  }

  #begin(message: Ready): void {
    const { recover, file } = this.#start;
    if ('failure' in message) this.#began.reject(this.#errorIn(recover ?? file, message.failure));
    else this.#began.resolve(message.ready);
  }

  #fail(error: unknown): void {
    this.#failure ??= storeError(this.#start.file, error);
    this.#began.reject(this.#failure);
    for (const { reject } of this.#pending.splice(0)) reject(this.#failure);
  }

  /**
   * Converts a failure to an error. The message names the database file for SQLite errors, and the path `read` for
   * other errors.
   */
  #errorIn(read: string, failure: Failure): unknown {
    return storeError(failure.code?.startsWith('SQLITE_') ? this.#start.file : read, errorOf(failure));
  }
}

/** Restores an error that the thread has sent as plain data. */
export function errorOf({ message, code }: Failure): Error {
  return Object.assign(new Error(message), code === undefined ? {} : { code });
}

export function endedError(file: string): PlatformError {
  return new PlatformError('STORE_ERROR', `${file} is closed: its service is stopping.`, {
    details: { file },
  });
}
