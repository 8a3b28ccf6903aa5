import { seconds } from '../../../../kit/time/duration.ts';
import type { Attempt } from '../run/effects.ts';
import { type StepKey, type StepState, stepAt, stepKeyOf } from '../run/state.ts';
import { abortReplay } from './replay-abort.ts';
import type { Turn } from './turn.ts';

// This module handles the `ctx.step` functions of workflows that are written in code. These functions run in the
// process that replays the workflow function.

/** Time between the timeout of a step and the forced end of the step's process. */
const OVERRUN_MS = seconds(2);
/** Time that a cancelled step has to clean up. */
const CANCEL_GRACE_MS = seconds(5);

/** Registers the step as in flight in the replay. The next reply to the function then begins the step. */
export function beginOwnFlight(turn: Turn, step: StepState, { attempt, stepId }: Attempt): void {
  const { code, run } = turn.state;
  code?.replay?.inFlight.set(step.record.index, {
    attempt,
    timeoutMs: turn.step(step).timeoutMs,
    idempotencyKey: step.record.idempotencyKey ?? `${run.id}/${stepId}`,
    isBeginAnswered: false,
    isAbortAnswered: false,
  });
}

export function noteOwnStop(turn: Turn, step: StepState): void {
  if (!step.isExpired) armOverrun(turn, stepKeyOf(step), CANCEL_GRACE_MS);
}

export function noteOwnTimeout(turn: Turn, step: StepState): void {
  if (!step.stopped) armOverrun(turn, stepKeyOf(step), OVERRUN_MS);
}

function armOverrun(turn: Turn, step: StepKey, ms: number): void {
  const replay = turn.state.code?.replay;
  if (!replay) return;
  const event = { type: 'replay.overrun', replay: replay.id, step } as const;
  turn.effect({ type: 'timer.set', name: `overrun ${step}`, ms, event });
}

/** Ends the process of a step that did not end after its abort. */
export function endOverrun(turn: Turn, key: StepKey): void {
  const { state } = turn;
  const replay = state.code?.replay;
  const { step, job } = stepAt(state, key);
  if (!replay?.inFlight.has(step.record.index)) return;
  const isLeftAlone = (other: StepState): boolean =>
    !other.stopped && replay.inFlight.has(other.record.index);
  // The timer is set again instead of ending the process, because the process also runs steps that were not stopped,
  // such as clean-up steps.
  if (step.stopped && job.steps.some(isLeftAlone)) {
    armOverrun(turn, key, OVERRUN_MS);
    return;
  }
  const how = step.stopped ? 'it was cancelled' : 'its time limit passed';
  const message = `The step "${turn.step(step).id}" did not end when ${how}, so its process and all other work in that process were ended.`;
  abortReplay(turn, { code: 'EXECUTION_TIMEOUT', message });
}
