import { PlatformError } from '../../../../kit/errors/errors.ts';
import type { JournalRange } from '../committer/protocol.ts';
import type { Applied } from '../committer/thread.ts';
import type { WriteLoad } from './write-load.ts';

/** Location of a frame that is on disk but not yet in the database. */
export interface Written {
  file: string;
  fd: number;
  from: number;
  to: number;
  sequence: number;
}

export interface CheckpointerDeps {
  apply(range: JournalRange): Promise<Applied>;
  /** Sequence of the last frame in the database. */
  applied: number;
  load: WriteLoad;
  /** Called when applying starts to fail. Applying is retried until it succeeds. */
  failed(error: unknown): void;
  recovered(): void;
  closedError(): Error;
  /** Called when all frames are applied, with the sequence of the last one. */
  emptied(applied: number): void;
}

interface Waiter {
  sequence: number;
  resolve(): void;
  reject(error: unknown): void;
}

/** Interval at which frames are applied. At low load, it is the delay until a delivery is in the database. */
const POLL_MS = 20;
/**
 * Above this size of unapplied frames, frames are applied even during a burst, so that the journal does not become
 * full.
 */
const MAX_WAITING_BYTES = 192 * 1024 * 1024;
/** Maximum bytes of the journal that one request to the committer thread applies. Other requests can run in between. */
const MAX_RANGE_BYTES = 2 * 1024 * 1024;
const RETRY_MS = 1000;

/**
 * Moves journal frames into the database: at once if a caller waits for them, and within POLL_MS at low load. During a
 * burst they are postponed, because no response waits for them.
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

  /** Resolves when all frames added so far are in the database. Rejects with the error that prevents it. */
  all(): Promise<void> {
    return this.#until(this.#waiting.at(-1)?.sequence ?? 0);
  }

  /**
   * Resolves when a frame with a sequence above `applied` is in the database. Rejects with the error that prevents it.
   */
  progress(applied: number): Promise<void> {
    return this.#until(applied + 1);
  }

  /** Stops retrying and rejects all waiters. */
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

  /** Applies the next range of frames. Returns false when that failed. */
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

/** Returns the longest range of adjacent frames in one file, up to a maximum size. */
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
