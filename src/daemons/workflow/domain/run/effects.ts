import type {
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
  /** Whether the work needs a process of its own, because a process was lost during this step. */
  isAlone: boolean;
}

/** The part of a definition whose expression a thread evaluates. */
export type EvaluationTarget =
  | { of: 'step.if'; step: StepKey }
  | { of: 'job.if' | 'job.matrix' | 'job.outputs'; job: string }
  | { of: 'run.outputs' };

/** Parameters of a replay besides the run's input. */
export interface ReplayStart {
  replay: number;
  jobKey: string;
  seed: string;
  startedAt: number;
  /** Number of finished steps, whose results the replay returns without running them. */
  remembered: number;
  /** Whether earlier replays recorded steps. */
  recalls: boolean;
  /**
   * Whether the function begins only after its in-flight mark is durable, because the function may have crashed an
   * earlier boot.
   */
  marksBegin: boolean;
  timeoutMs: number;
  /** Whether the process is reserved for this call. */
  isAlone: boolean;
}

export interface EndedAttempt {
  stepId: string;
  uses: string;
  attempt: number;
  durationMs: number;
  failure: Failure | null;
}

/** Error with which a replay is aborted. */
export interface AbortError {
  code: PlatformCode;
  message: string;
}

/** Side effect of a transition. It starts after the writes of the transition are durable. */
export type Effect =
  | {
      type: 'attempt.start';
      attempt: Attempt;
      given: { input: Record<string, JsonValue> } | { failure: Failure };
    }
  | { type: 'attempt.evaluate'; attempt: Attempt; scope: Scope }
  | { type: 'attempt.abort'; step: StepKey; how: RunEnding }
  /** Ends an attempt whose step was settled by the function itself. */
  | { type: 'attempt.release'; step: StepKey }
  | { type: 'attempt.ended'; ended: EndedAttempt }
  | { type: 'slot.request'; owner: StepKey | 'replay' }
  /** Releases the owner's slot, or withdraws the request for it. */
  | { type: 'slot.release'; owner: StepKey | 'replay' }
  | { type: 'step.inspect'; step: StepKey }
  | { type: 'evaluate'; id: string; target: EvaluationTarget; scope: Scope }
  | { type: 'child.find'; step: StepKey; runId: string }
  | { type: 'child.cancel'; runId: string; step: StepKey | null }
  | { type: 'children.read'; ended: string[] }
  | { type: 'timer.set'; name: string; ms: number; event: RunEvent }
  | { type: 'timer.clear'; name: string }
  | { type: 'plugin.awaited'; pluginId: string; why: string }
  /** Ends the tracking of the run's waits for plugins. The run then calls all its plugins again. */
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
