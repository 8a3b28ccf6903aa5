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

/** One attempt of a step. */
export interface Attempt {
  step: StepKey;
  /** Public name of the step: `<job>.<step>`. */
  stepId: string;
  attempt: number;
  failures: number;
  idempotencyKey: string | null;
  /** The work shares no process, because one was lost under the step. */
  isAlone: boolean;
}

/** The expression to evaluate in a thread. */
export type EvaluationTarget =
  | { of: 'step.if'; step: StepKey }
  | { of: 'job.if' | 'job.matrix' | 'job.outputs'; job: string }
  | { of: 'run.outputs' };

/** Parameters of a replay beside the run's input. */
export interface ReplayStart {
  replay: number;
  jobKey: string;
  seed: string;
  startedAt: number;
  /** Number of finished steps. */
  remembered: number;
  /** Whether earlier replays recorded steps. */
  recalls: boolean;
  /** The function begins only after its in-flight mark is durable, because it may have crashed an earlier boot. */
  marksBegin: boolean;
  timeoutMs: number;
  /** Reserves the process for this call. */
  isAlone: boolean;
}

export interface EndedAttempt {
  stepId: string;
  uses: string;
  attempt: number;
  durationMs: number;
  failure: Failure | null;
}

/** An error that ends a replay. */
export interface AbortError {
  code: PlatformCode;
  message: string;
}

/** Work outside the state. Each effect starts after the writes of its transition are durable. */
export type Effect =
  | {
      type: 'attempt.start';
      attempt: Attempt;
      given: { input: Record<string, JsonValue> } | { failure: Failure };
    }
  | { type: 'attempt.evaluate'; attempt: Attempt; scope: Scope }
  | { type: 'attempt.abort'; step: StepKey; how: RunEnding }
  /** The function settled its own step. */
  | { type: 'attempt.release'; step: StepKey }
  | { type: 'attempt.ended'; ended: EndedAttempt }
  | { type: 'slot.request'; owner: StepKey | 'replay' }
  /** Withdraws the request for a slot, or releases the slot. */
  | { type: 'slot.release'; owner: StepKey | 'replay' }
  | { type: 'step.inspect'; step: StepKey }
  | { type: 'evaluate'; id: string; target: EvaluationTarget; scope: Scope }
  | { type: 'child.find'; step: StepKey; runId: string }
  | { type: 'child.cancel'; runId: string; step: StepKey | null }
  | { type: 'children.read'; ended: string[] }
  | { type: 'timer.set'; name: string; ms: number; event: RunEvent }
  | { type: 'timer.clear'; name: string }
  | { type: 'plugin.awaited'; pluginId: string; why: string }
  /** The run retries all its plugins. */
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
