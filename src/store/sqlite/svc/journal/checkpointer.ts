import { PlatformError } from '../../../../kit/errors/errors.ts';
import type { JournalRange } from '../committer/protocol.ts';
import type { Applied } from '../committer/thread.ts';
import type { WriteLoad } from './write-load.ts';

/** Location of a journal frame that is on disk but not in the database yet. */
export interface Written {
  file: string;
  fd: number;
  from: number;
  to: number;
  sequence: number;
}

export interface CheckpointerDeps {
  apply(range: JournalRange): Promise<Applied>;
  /** Sequence number of the last frame in the database. */
  applied: number;
  load: WriteLoad;
  /**
   * Callback that is called on the first error while frames are applied. Frames are then retried until they are
   * applied.
   */
  failed(error: unknown): void;
  recovered(): void;
  closedError(): Error;
  /** Callback that is called when all frames are applied. `applied` is the sequence number of the last frame. */
  emptied(applied: number): void;
}

interface Waiter {
  sequence: number;
  resolve(): void;
  reject(error: unknown): void;
}

/** Interval at which frames are applied. At low load, a delivery reaches the database within this time. */
const POLL_MS = 20;
/**
 * Size of unapplied frames above which frames are applied even during a burst. The limit keeps the journal from
 * becoming full.
 */
const MAX_WAITING_BYTES = 192 * 1024 * 1024;
/**
 * Maximum number of journal bytes per request to the committer thread. Other requests can run between two such
 * requests.
 */
const MAX_RANGE_BYTES = 2 * 1024 * 1024;
const RETRY_MS = 1000;

/**
 * Applies journal frames to the database, usually within POLL_MS. During a burst, frames are applied later, because
 * responses to senders do not wait for the database.
 */
export class Checkpointer {
  readonly #deps: CheckpointerDeps;
  readonly #waiting: Written[] = [];
  #applied: number;
  #waitingBytes = 0;
  #waiters: Waiter[] = [];
  #isRunning = false;
  #failure: { error: unknown } | undefined;
  #isBackingOff = false;
  #isClosed = false;
  #isBurst = false;
  #pollTimer: NodeJS.Timeout | undefined;

  constructor(deps: CheckpointerDeps) {
    this.#deps = deps;
    this.#applied = deps.applied;
  }

  get applied(): number {
    return this.#applied;
  }

  get added(): number {
    return this.#waiting.at(-1)?.sequence ?? this.#applied;
  }

  get waitingBytes(): number {
    return this.#waitingBytes;
  }

  /** The error that prevents frames from being applied, or undefined. */
  get failure(): unknown {
    return this.#failure?.error;
  }

  add(frame: Written): void {
    this.#waiting.push(frame);
    this.#waitingBytes += frame.to - frame.from;
    this.#arm(POLL_MS);
  }

  /** Resolves when all frames added so far are in the database. Rejects if applying fails. */
  all(): Promise<void> {
    return this.#until(this.#waiting.at(-1)?.sequence ?? 0);
  }

  /** Resolves when a frame with a sequence number above `applied` is in the database. Rejects if applying fails. */
  progress(applied: number): Promise<void> {
    return this.#until(applied + 1);
  }

  /** Stops retrying and rejects all pending promises. */
  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#pollTimer);
    this.#refuse(this.#deps.closedError());
  }

  #isDue(): boolean {
    return (
      this.#waiters.length > 0 ||
      !this.#isBurst ||
      this.#failure !== undefined ||
      this.#waitingBytes > MAX_WAITING_BYTES
    );
  }

  #arm(ms: number): void {
    if (this.#isClosed || this.#waiting.length === 0) return;
    this.#pollTimer ??= setTimeout(() => this.#poll(), ms).unref();
  }

  #poll(): void {
    this.#pollTimer = undefined;
    this.#isBurst = this.#deps.load.isBurst();
    this.#arm(POLL_MS);
    if (this.#isDue()) void this.#run();
  }

  async #run(): Promise<void> {
    if (this.#isRunning || this.#isBackingOff || this.#isClosed) return;
    this.#isRunning = true;
    while (this.#waiting.length > 0 && this.#isDue() && (await this.#step()) && !this.#isClosed);
    this.#isRunning = false;
    if (this.#waiting.length === 0) this.#deps.emptied(this.#applied);
  }

  /** Applies the next range of frames. Returns false if applying failed. */
  async #step(): Promise<boolean> {
    const next = nextRange(this.#waiting);
    try {
      const reply = await this.#deps.apply(next.range);
      this.#advance(reply.applied);
      if (reply.failure) throw reply.failure;
      if (reply.applied < next.sequence) throw damaged(next.range);
      if (this.#failure) this.#deps.recovered();
      this.#failure = undefined;
      return true;
    } catch (error) {
      this.#fail(error);
      return false;
    }
  }

  #advance(sequence: number): void {
    this.#applied = sequence;
    const left = this.#waiting.findIndex((frame) => frame.sequence > sequence);
    const done = this.#waiting.splice(0, left === -1 ? this.#waiting.length : left);
    for (const { from, to } of done) this.#waitingBytes -= to - from;
    const [reached, others] = [[] as Waiter[], [] as Waiter[]];
    for (const waiter of this.#waiters) (waiter.sequence <= sequence ? reached : others).push(waiter);
    this.#waiters = others;
    for (const { resolve } of reached) resolve();
  }

  #fail(error: unknown): void {
    if (!this.#failure && !this.#isClosed) this.#deps.failed(error);
    this.#failure = { error };
    this.#isBackingOff = true;
    this.#refuse(error);
    setTimeout(() => {
      this.#isBackingOff = false;
      this.#arm(0);
    }, RETRY_MS).unref();
  }

  #refuse(error: unknown): void {
    for (const { reject } of this.#waiters.splice(0)) reject(error);
  }

  #until(sequence: number): Promise<void> {
    if (sequence <= this.#applied) return Promise.resolve();
    if (this.#isClosed) return Promise.reject(this.#deps.closedError());
    if (this.#failure) return Promise.reject(this.#failure.error);
    return new Promise((resolve, reject) => {
      this.#waiters.push({ sequence, resolve, reject });
      void this.#run();
    });
  }
}

/** Returns the longest range of adjacent frames in one file, up to MAX_RANGE_BYTES. */
function nextRange(waiting: readonly Written[]): { range: JournalRange; sequence: number } {
  const { file, fd, from } = waiting[0]!;
  let { to, sequence } = waiting[0]!;
  for (let i = 1; i < waiting.length; i++) {
    const frame = waiting[i]!;
    if (frame.fd !== fd || frame.from !== to || frame.to - from > MAX_RANGE_BYTES) break;
    ({ to, sequence } = frame);
  }
  return { range: { file, fd, from, to }, sequence };
}

function damaged({ file, from, to }: JournalRange): PlatformError {
  return new PlatformError(
    'STORE_ERROR',
    `${file} cannot be read back: its bytes from ${from} to ${to} have changed since they were written. Check the disk, then restart the gateway.`,
    { details: { file, from, to } },
  );
}
