import { PlatformError } from '../../../kit/errors.ts';
import type { JournalRange } from '../committer/protocol.ts';
import type { Applied } from '../committer/thread.ts';
import type { Written } from './writer.ts';

export interface DrainDeps {
  apply(range: JournalRange): Promise<Applied>;
  /** Of the last frame that is in the database. */
  applied: number;
  /** Told when it begins to fail; it is tried again until that is over. */
  failed(error: unknown): void;
  /** Told when it works again. */
  recovered(): void;
  /** What those are told who wait when it is closed. */
  closedError(): Error;
  /** Nothing is left to apply. */
  emptied(): void;
}

export interface Drain {
  add(frame: Written, units: number): void;
  /** Of the last frame that is in the database. */
  readonly applied: number;
  /** Of the last frame that was added. */
  readonly added: number;
  /** Of what is not in the database yet. */
  readonly waitingBytes: number;
  /** Settles when all that was added before is in the database. Throws what keeps it from getting there. */
  all(): Promise<void>;
  /** Settles when more is in the database than `applied`. Throws likewise. */
  progress(applied: number): Promise<void>;
  /** What has kept it from getting there since it began to fail; undefined while nothing does. */
  readonly failure: unknown;
  /** Stops trying, and keeps nobody waiting. */
  close(): void;
}

interface Waiter {
  sequence: number;
  resolve(): void;
  reject(error: unknown): void;
}

/** How soon an idle platform has in its database what it acknowledged. */
const LOOK_MS = 20;
/** So many units between two looks are a burst: what they cost in the database can wait until it is over. */
const BURST_UNITS = 40;
/** Beyond this it does not wait: room is to be left for what comes. */
const MOST_WAITING_BYTES = 192 * 1024 * 1024;
/** A request to the thread; between two of them others get their turn. */
const STRETCH_BYTES = 2 * 1024 * 1024;
const RETRY_MS = 1000;

/**
 * Moves what the journal holds into the database: soon when there is little to do, at once when somebody asks, and after
 * a burst when that is bounded. A row costs as much as all else about accepting a delivery, and nobody waits for it.
 */
export function createDrain(deps: DrainDeps): Drain {
  let { applied } = deps;
  const waiting: Written[] = [];
  let waitingBytes = 0;
  let waiters: Waiter[] = [];
  let running = false;
  /** What keeps it from coming further. */
  let failure: { error: unknown } | undefined;
  /** After a failure, until it is tried again. */
  let isResting = false;
  let closed = false;
  let unitsSinceLook = 0;
  let isBurst = false;
  let looking: NodeJS.Timeout | undefined;

  const isDue = (): boolean =>
    waiters.length > 0 || !isBurst || failure !== undefined || waitingBytes > MOST_WAITING_BYTES;

  function look(): void {
    looking = undefined;
    isBurst = unitsSinceLook >= BURST_UNITS;
    unitsSinceLook = 0;
    arm(LOOK_MS);
    if (isDue()) void run();
  }

  function arm(ms: number): void {
    if (closed || waiting.length === 0) return;
    looking ??= setTimeout(look, ms).unref();
  }

  async function run(): Promise<void> {
    if (running || isResting || closed) return;
    running = true;
    while (waiting.length > 0 && isDue() && (await step()) && !closed);
    running = false;
    if (waiting.length === 0) deps.emptied();
  }

  /** Whether it came further. */
  async function step(): Promise<boolean> {
    const stretch = nextStretch();
    try {
      const reply = await deps.apply(stretch.range);
      arrive(reply.applied);
      if (reply.failure) throw reply.failure;
      if (reply.applied < stretch.sequence) throw damaged(stretch.range);
      if (failure) deps.recovered();
      failure = undefined;
      return true;
    } catch (error) {
      fail(error);
      return false;
    }
  }

  /** Frames that lie one behind the other in one file. */
  function nextStretch(): { range: JournalRange; sequence: number } {
    const { file, fd, from } = waiting[0]!;
    let { to, sequence } = waiting[0]!;
    for (let i = 1; i < waiting.length; i++) {
      const frame = waiting[i]!;
      if (frame.fd !== fd || frame.from !== to || frame.to - from > STRETCH_BYTES) break;
      ({ to, sequence } = frame);
    }
    return { range: { file, fd, from, to }, sequence };
  }

  function arrive(sequence: number): void {
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
    isResting = true;
    refuse(error);
    setTimeout(() => {
      isResting = false;
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
      unitsSinceLook += units;
      arm(LOOK_MS);
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
      clearTimeout(looking);
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
