import { type RunState, type StepState, stepKeyOf } from '../run/state.ts';
import type { Turn } from './turn.ts';

/**
 * Looks up whether the child run of a step has ended. Repeated lookups happen only after the end of the child was
 * reported, to save reads.
 */
export function lookUpChild(turn: Turn, step: StepState): void {
  const { state } = turn;
  const runId = step.wait?.runId;
  if (!runId || state.draining || step.flight !== 'idle' || isOpen(state, step)) return;
  state.endedChildren.delete(runId);
  step.flight = 'looking';
  turn.effect({ type: 'child.find', step: stepKeyOf(step), runId });
}

/**
 * Handles the timeout of a step with a child run. The result of an ended child settles the step. An unfinished child is
 * cancelled.
 */
export function expireChild(turn: Turn, step: StepState): void {
  if (!isOpen(turn.state, step)) lookUpChild(turn, step);
  else if (!turn.state.draining && step.flight === 'idle') {
    step.flight = 'looking';
    turn.effect({ type: 'child.cancel', runId: step.openChild!, step: stepKeyOf(step) });
  }
}

/**
 * Records that the child run of a step was durably cancelled. If a crash occurs before this change is persisted, the
 * step becomes due again.
 */
export function noteChildCancelled(turn: Turn, step: StepState): void {
  if (step.record.status !== 'waiting' || !step.wait) return;
  step.wait = { ...step.wait, timedOut: true };
  step.record.wait = JSON.stringify(step.wait);
  step.record.wakeAt = null;
  turn.touchStep(step);
}

/** Returns whether the child run was unfinished at the latest lookup and has not ended since. */
function isOpen({ endedChildren }: RunState, { wait, openChild }: StepState): boolean {
  return openChild !== null && openChild === wait?.runId && !endedChildren.has(openChild);
}

/**
 * Cancels the child run of a step that ends with its run or job. Each child is cancelled only once. Returns the id of
 * the child, or undefined without a child.
 */
export function cancelChildOf(turn: Turn, step: StepState): string | undefined {
  const { cancelledChildren } = turn.state;
  const runId = step.wait?.for === 'child' ? step.wait.runId : undefined;
  if (runId === undefined || cancelledChildren.has(runId)) return runId;
  cancelledChildren.add(runId);
  turn.effect({ type: 'child.cancel', runId, step: null });
  return runId;
}

/**
 * Returns whether all children of an ending run have ended. Returns undefined while the store is read. After a crash,
 * only the store lists every child. @spec docs/decisions/0171
 */
export function haveChildrenEnded(turn: Turn): boolean | undefined {
  const { state, program } = turn;
  const mayHaveChild = (step: StepState): boolean =>
    step.record.attempts > 0 && program.step(step).uses === 'workflow';
  const isAlone = [...state.groups.values()].every(
    (jobs) => !jobs?.some(({ steps }) => steps.some(mayHaveChild)),
  );
  if (isAlone) return true;
  const { openChildren: open, endedChildren } = state;
  if (state.isReadingChildren) return undefined;
  if (open !== null && !open.some((id) => endedChildren.has(id))) return open.length === 0;
  state.isReadingChildren = true;
  turn.effect({ type: 'children.read', ended: (open ?? []).filter((id) => endedChildren.has(id)) });
  return undefined;
}

/** Records the unfinished children of the run. Cancels the children that were not in the previous record. */
export function noteOpenChildren(turn: Turn, open: string[] | null, ended: readonly string[]): void {
  const { state } = turn;
  state.isReadingChildren = false;
  if (open === null) return;
  for (const id of ended) state.endedChildren.delete(id);
  for (const runId of open)
    if (!state.openChildren?.includes(runId)) turn.effect({ type: 'child.cancel', runId, step: null });
  state.openChildren = open;
}
