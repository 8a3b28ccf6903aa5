import { PlatformError } from '../../../../kit/errors/errors.ts';
import type { JournalRange } from '../committer/protocol.ts';
import type { Applied } from '../committer/thread.ts';
import type { Written } from './writer.ts';

export interface CheckpointerDeps {
  apply(range: JournalRange): Promise<Applied>;
  /** Sequence of the last frame in the database. */
  applied: number;
  /** Called when applying starts to fail; it is retried until it succeeds. */
  failed(error: unknown): void;
  /** Called when applying works again. */
  recovered(): void;
  /** Rejects pending waiters on close. */
  closedError(): Error;
  /** Called when every frame is applied. */
  emptied(): void;
}

export interface Checkpointer {
  add(frame: Written, units: number): void;
  /** Sequence of the last frame in the database. */
  readonly applied: number;
  /** Sequence of the last added frame. */
  readonly added: number;
  /** Bytes that are not in the database yet. */
  readonly waitingBytes: number;
  /** Resolves when every frame added so far is in the database. Rejects with the error that prevents it. */
  all(): Promise<void>;
  /** Resolves when more than `applied` is in the database. Rejects as `all` does. */
  progress(applied: number): Promise<void>;
  /** The current apply error; undefined while applying works. */
  readonly failure: unknown;
  /** Stops retrying and rejects all waiters. */
  close(): void;
}

interface Waiter {
  sequence: number;
  resolve(): void;
  reject(error: unknown): void;
}

/** Delay until an idle platform applies an acknowledged delivery, in ms. */
const POLL_MS = 20;
/** Units per interval that count as a burst, during which applying is postponed. */
const BURST_UNITS = 40;
/** Above this, frames are applied even during a burst, to leave room in the journal. */
const MAX_WAITING_BYTES = 192 * 1024 * 1024;
/** Maximum bytes per request to the thread, so that other requests interleave. */
const MAX_RANGE_BYTES = 2 * 1024 * 1024;
const RETRY_MS = 1000;

/**
 * Moves journal frames into the database: soon at low load, at once for a waiter, and after a burst up to a
 * bound. Inserting a row costs as much as the rest of accepting a delivery, and no response waits for it.
 */
export function createCheckpointer(deps: CheckpointerDeps): Checkpointer {
  let { applied } = deps;
  const waiting: Written[] = [];
  let waitingBytes = 0;
  let waiters: Waiter[] = [];
  let running = false;
  /** The current apply error. */
  let failure: { error: unknown } | undefined;
  /** True between a failure and the retry. */
  let isBackingOff = false;
  let closed = false;
  let unitsSincePoll = 0;
  let isBurst = false;
  let pollTimer: NodeJS.Timeout | undefined;

  const isDue = (): boolean =>
    waiters.length > 0 || !isBurst || failure !== undefined || waitingBytes > MAX_WAITING_BYTES;

  function poll(): void {
    pollTimer = undefined;
    isBurst = unitsSincePoll >= BURST_UNITS;
    unitsSincePoll = 0;
    arm(POLL_MS);
    if (isDue()) void run();
  }

  function arm(ms: number): void {
    if (closed || waiting.length === 0) return;
    pollTimer ??= setTimeout(poll, ms).unref();
  }

  async function run(): Promise<void> {
    if (running || isBackingOff || closed) return;
    running = true;
    while (waiting.length > 0 && isDue() && (await step()) && !closed);
    running = false;
    if (waiting.length === 0) deps.emptied();
  }

  /** Returns whether it made progress. */
  async function step(): Promise<boolean> {
    const next = nextRange();
    try {
      const reply = await deps.apply(next.range);
      advance(reply.applied);
      if (reply.failure) throw reply.failure;
      if (reply.applied < next.sequence) throw damaged(next.range);
      if (failure) deps.recovered();
      failure = undefined;
      return true;
    } catch (error) {
      fail(error);
      return false;
    }
  }

  /** Adjacent frames of one file, up to a maximum size. */
  function nextRange(): { range: JournalRange; sequence: number } {
    const { file, fd, from } = waiting[0]!;
    let { to, sequence } = waiting[0]!;
    for (let i = 1; i < waiting.length; i++) {
      const frame = waiting[i]!;
      if (frame.fd !== fd || frame.from !== to || frame.to - from > MAX_RANGE_BYTES) break;
      ({ to, sequence } = frame);
    }
    return { range: { file, fd, from, to }, sequence };
  }

  function advance(sequence: number): void {
    applied = sequence;
    const left = waiting.findIndex((frame) => frame.sequence > applied);
    const done = waiting.splice(0, left === -1 ? waiting.length : left);
    for (const { from, to } of done) waitingBytes -= to - from;
    const [reached, others] = [[] as Waiter[], [] as Waiter[]];
    for (const waiter of waiters) (waiter.sequence <= applied ? reached : others).push(waiter);
    waiters = others;
    for (const { resolve } of reached) resolve();
  }

  function fail(error: unknown): void {
    if (!failure && !closed) deps.failed(error);
    failure = { error };
    isBackingOff = true;
    refuse(error);
    setTimeout(() => {
      isBackingOff = false;
      arm(0);
    }, RETRY_MS).unref();
  }

  function refuse(error: unknown): void {
    for (const { reject } of waiters.splice(0)) reject(error);
  }

  function until(sequence: number): Promise<void> {
    if (sequence <= applied) return Promise.resolve();
    if (closed) return Promise.reject(deps.closedError());
    if (failure) return Promise.reject(failure.error);
    return new Promise((resolve, reject) => {
      waiters.push({ sequence, resolve, reject });
      void run();
    });
  }

  return {
    add(frame, units) {
      waiting.push(frame);
      waitingBytes += frame.to - frame.from;
      unitsSincePoll += units;
      arm(POLL_MS);
    },
    get applied() {
      return applied;
    },
    get added() {
      return waiting.at(-1)?.sequence ?? applied;
    },
    get waitingBytes() {
      return waitingBytes;
    },
    all: () => until(waiting.at(-1)?.sequence ?? 0),
    progress: (before) => until(before + 1),
    get failure() {
      return failure?.error;
    },
    close() {
      closed = true;
      clearTimeout(pollTimer);
      refuse(deps.closedError());
    },
  };
}

function damaged({ file, from, to }: JournalRange): PlatformError {
  return new PlatformError(
    'STORE_ERROR',
    `${file} cannot be read back: what was written between ${from} and ${to} has changed. Check the disk, and start the gateway anew.`,
    { details: { file, from, to } },
  );
}
