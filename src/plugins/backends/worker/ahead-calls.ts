import { systemClock } from '../../../kit/time/clock.ts';
import type { ToRunner } from '../../runner/protocol.ts';
import type { Call } from './call.ts';

/**
 * Time for an idle process to start the next call. The time is long, because the process needs not be scheduled at once
 * on a busy machine.
 */
const START_NEXT_MS = 5000;

interface AheadCall {
  call: Call;
  isRecalled: boolean;
}

/** Calls that were sent to a busy process. As far as this service knows, none of their code has run. */
export class AheadCalls {
  readonly #send: (frame: ToRunner) => void;
  readonly #onBlocked: (afterMs: number) => void;
  readonly #entries = new Map<string, AheadCall>();
  #stopTimer: (() => void) | undefined;

  /** `onBlocked` is called when the process runs no call and does not start the next one in time. */
  constructor(send: (frame: ToRunner) => void, onBlocked: (afterMs: number) => void) {
    this.#send = send;
    this.#onBlocked = onBlocked;
  }

  get size(): number {
    return this.#entries.size;
  }

  get calls(): Call[] {
    return Array.from(this.#entries.values(), ({ call }) => call);
  }

  add(call: Call): void {
    this.#entries.set(call.request.executionId, { call, isRecalled: false });
  }

  /** Removes a call that has started or was returned. Returns undefined for other ids. */
  remove(executionId: unknown): Call | undefined {
    const entry = this.#entries.get(executionId as string);
    this.#entries.delete(executionId as string);
    return entry?.call;
  }

  /**
   * Limits the time until a process without running calls starts the next call. No other time limit applies to a call
   * that was sent ahead, and plugin code can block the process after its result. Must be called after each change.
   */
  limitStart(isIdle: boolean): void {
    if (!isIdle || this.size === 0) {
      this.#stopTimer?.();
      this.#stopTimer = undefined;
      return;
    }
    this.#stopTimer ??= this.#startTimer();
  }

  #startTimer(): () => void {
    const stop = systemClock.after(START_NEXT_MS, () => {
      // Frames that arrived while this service was busy are read before the check.
      setImmediate(() => {
        if (this.#stopTimer === stop) this.#onBlocked(START_NEXT_MS);
      });
    });
    return stop;
  }

  /** Requests a call back. The process returns the call, unless it has started. */
  recall({ request: { executionId } }: Call): void {
    const entry = this.#entries.get(executionId);
    if (!entry || entry.isRecalled) return;
    entry.isRecalled = true;
    this.#send({ type: 'recall', executionId });
  }
}
