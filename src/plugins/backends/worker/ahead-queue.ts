import type { PlatformError } from '../../../kit/errors/errors.ts';
import type { FairShares } from '../../../kit/limits/fair-shares.ts';
import { systemClock } from '../../../kit/time/clock.ts';
import type { WaitQueue } from '../wait-queue.ts';
import type { Call } from './call.ts';
import { HandlerDurations } from './handler-durations.ts';
import type { PoolMembers } from './pool-members.ts';
import type { RunnerProcess } from './runner-process.ts';

/** Calls are sent ahead only behind handlers with at most this average duration, in ms. */
const QUICK_MS = 2;
/** If a call runs longer than this time, the calls behind it are recalled. */
const RECALL_MS = 20;
/**
 * Time for an idle process to start the next call. The time is long, because the process needs not be scheduled at once
 * on a busy machine.
 */
const START_NEXT_MS = 5000;
/** Calls with longer frames are not sent ahead, because a blocked process does not read them. */
const MAX_FRAME_CHARS = 64 * 1024;

export interface AheadQueueDeps {
  /** Maximum calls that a process receives ahead. Zero disables sending ahead. */
  maxAhead: number;
  members: PoolMembers;
  queue: WaitQueue;
  shares: FairShares;
}

/**
 * Sends queued calls ahead to busy processes, so that a process needs not wait for the service between two quick calls.
 * A call that was sent ahead stays part of the queue until its handler starts.
 */
export class AheadQueue {
  readonly #deps: AheadQueueDeps;
  readonly #durations = new HandlerDurations();
  readonly #processOf = new Map<Call, RunnerProcess>();
  /** Calls that were returned once. They are not sent ahead again. */
  readonly #returned = new WeakSet<Call>();
  /** Calls whose wait limit has expired, with the error for the case that their process returns them. */
  readonly #expired = new Map<Call, PlatformError>();
  #isWatching = false;

  constructor(deps: AheadQueueDeps) {
    this.#deps = deps;
  }

  get size(): number {
    return this.#processOf.size;
  }

  /** Sends calls ahead. Only the tenant whose turn is next is considered, and only behind calls of its own. */
  fill(): void {
    const { queue, maxAhead } = this.#deps;
    while (queue.size > 0 && maxAhead > 0) {
      let process: RunnerProcess | undefined;
      let isFirst = true;
      const call = queue.lend((first) => {
        if (isFirst && !this.#returned.has(first)) process = this.#processFor(first);
        isFirst = false;
        return process !== undefined;
      });
      if (!call) return;
      this.#processOf.set(call, process!);
      process!.assignAhead(call);
      this.#watch();
    }
  }

  noteEnd(call: Call, tookMs: number | undefined): void {
    if (tookMs !== undefined) this.#durations.note(call.request.handler, tookMs);
  }

  noteStart(call: Call): void {
    this.#processOf.delete(call);
    this.#expired.delete(call);
    this.#deps.queue.release(call);
  }

  /** Puts a call whose handler has not started back into the queue, unless its wait limit has expired. */
  takeBack(call: Call): void {
    this.#processOf.delete(call);
    const error = this.#expired.get(call);
    if (error) call.reject(error);
    this.#expired.delete(call);
    if (call.isSettled) {
      this.#deps.queue.release(call);
      return;
    }
    this.#returned.add(call);
    this.#deps.queue.putBack(call);
  }

  /** Rejects a call that was sent ahead, and recalls it. Has no effect on other calls. */
  giveUp(call: Call, error: PlatformError): void {
    const process = this.#processOf.get(call);
    if (!process) return;
    call.reject(error);
    process.recall(call);
  }

  /** Returns whether the call waits in a process behind a call that is not quick. */
  isBehindSlow(call: Call): boolean {
    return (this.#processOf.get(call)?.runningMs ?? 0) > RECALL_MS;
  }

  /**
   * Recalls a call whose wait limit has expired. The call is rejected once its process has returned it, because only
   * then is it known that the call has not started. Has no effect on other calls.
   */
  expire(call: Call, error: PlatformError): void {
    const process = this.#processOf.get(call);
    if (!process) return;
    this.#expired.set(call, error);
    process.recall(call);
  }

  #processFor({ request: { tenantId, executionId }, frame, isAlone }: Call): RunnerProcess | undefined {
    const { members, shares, maxAhead } = this.#deps;
    if (isAlone || frame.length > MAX_FRAME_CHARS || !shares.mayKeep(tenantId)) return undefined;
    let best: RunnerProcess | undefined;
    for (const process of members.busyFor(tenantId)) {
      if (process.load > maxAhead || process.load >= (best?.load ?? Number.POSITIVE_INFINITY)) continue;
      if (process.runningMs > RECALL_MS || !process.isWarm) continue;
      const isQuick = process.calls.every(
        (other) =>
          !other.isAlone &&
          other.request.executionId !== executionId &&
          this.#durations.averageMs(other.request.handler) <= QUICK_MS,
      );
      if (isQuick) best = process;
    }
    return best;
  }

  #watch(): void {
    if (this.#isWatching) return;
    this.#isWatching = true;
    systemClock.after(RECALL_MS, () => {
      const now = performance.now();
      // Frames that arrived until now, while this service was busy, are read before the check.
      setImmediate(() => {
        this.#isWatching = false;
        this.#check(now);
      });
    });
  }

  /**
   * Recalls the calls behind slow calls, so that another process can run them. Ends processes that do not start their
   * next call. No other time limit applies to that call, and plugin code can block a process after its result.
   */
  #check(now: number): void {
    for (const [call, process] of this.#processOf) {
      if (process.runningMs > RECALL_MS) process.recall(call);
      if (now - (process.idleSince ?? now) >= START_NEXT_MS)
        process.end({ kind: 'blocked', afterMs: START_NEXT_MS });
    }
    if (this.#processOf.size > 0) this.#watch();
  }
}
