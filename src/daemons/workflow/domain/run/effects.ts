import type {
  ErrorClass,
  PartStatus,
  PlatformCode,
  ReadySteps,
  RecalledSteps,
  RunEnding,
  RunError,
  StepAnswer,
} from '../../../../contracts/index.ts';
import type { JsonValue } from '../../../../store/ports/index.ts';
import type { Scope } from '../definition/expressions.ts';
import type { RunEvent } from './events.ts';
import type { Failure } from './failure.ts';
import type { StepKey } from './state.ts';

export interface Attempt {
  step: StepKey;
  /** Public name of the step, in the form `<job>.<step>`. */
  stepId: string;
  attempt: number;
  failures: number;
  idempotencyKey: string | null;
  /**
   * Whether the attempt needs a process without other calls. Set if an earlier process ended unexpectedly during this
   * step.
   */
  isAlone: boolean;
}

/** Part of a definition whose expression a worker thread evaluates. */
export type EvaluationTarget =
  | { of: 'step.if'; step: StepKey }
  | { of: 'job.if' | 'job.matrix' | 'job.outputs'; job: string }
  | { of: 'run.outputs' };

/** Parameters of a replay, except the input of the run. */
export interface ReplayStart {
  replay: number;
  jobKey: string;
  seed: string;
  startedAt: number;
  /**
   * Number of finished steps. The replay returns the recorded results of these steps without running the steps again.
   */
  remembered: number;
  /** Whether earlier replays recorded steps. */
  recalls: boolean;
  /**
   * Whether the run is durably marked as in flight before the function begins. Set if the function might have crashed
   * an earlier service process.
   */
  marksBegin: boolean;
  timeoutMs: number;
  /** Whether the replay needs a process without other calls. */
  isAlone: boolean;
}

export interface EndedAttempt {
  stepId: string;
  uses: string;
  attempt: number;
  status: PartStatus;
  /** Time since its work began. */
  durationMs: number;
  failure: { errorClass: ErrorClass | null; error: RunError } | null;
}

export interface AbortError {
  code: PlatformCode;
  message: string;
}

/** Side effect of a transition. The effect starts after the writes of the transition are durable. */
export type Effect =
  | {
      type: 'attempt.start';
      attempt: Attempt;
      given: { input: Record<string, JsonValue> } | { failure: Failure };
    }
  | { type: 'attempt.evaluate'; attempt: Attempt; scope: Scope }
  | { type: 'attempt.abort'; step: StepKey; how: RunEnding }
  /** Ends an attempt after the workflow function itself has settled the step. */
  | { type: 'attempt.release'; step: StepKey }
  | { type: 'attempt.ended'; ended: EndedAttempt }
  | { type: 'slot.request'; owner: StepKey | 'replay' }
  /** Releases the slot of the owner, or withdraws the owner's slot request. */
  | { type: 'slot.release'; owner: StepKey | 'replay' }
  /** Withdraws the slot request of a step, or releases the slot if it was granted meanwhile. */
  | { type: 'slot.withdraw'; step: StepKey }
  | { type: 'step.inspect'; step: StepKey }
  | { type: 'evaluate'; id: string; target: EvaluationTarget; scope: Scope }
  | { type: 'child.find'; step: StepKey; runId: string }
  | { type: 'child.cancel'; runId: string; step: StepKey | null }
  | { type: 'children.read'; ended: string[] }
  | { type: 'timer.set'; name: string; ms: number; event: RunEvent }
  | { type: 'timer.clear'; name: string }
  | { type: 'plugin.awaited'; pluginId: string; why: string }
  /** Stops tracking which plugins the run waits for, because the run calls all of its plugins again. */
  | { type: 'plugins.retried' }
  | { type: 'replay.start'; start: ReplayStart }
  | { type: 'replay.abort'; error: AbortError }
  | {
      type: 'replay.reply';
      request: number;
      reply: StepAnswer | RecalledSteps | ReadySteps | { begun: true };
    }
  | { type: 'replay.refuse'; request: number; error: RunError }
  | { type: 'leave'; how: 'parked' | 'ended'; wakesInMs: number };
