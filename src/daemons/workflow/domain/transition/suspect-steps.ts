import { isOwnStep } from '../definition/compile-code.ts';
import { isAtWork, type JobState, type StepState } from '../run/state.ts';
import { isFinal } from '../states.ts';
import type { Turn } from './turn.ts';

/**
 * Returns whether a step must wait for other steps of its job. After a process crash, the steps of the job run one at a
 * time, so that another crash shows which step is the cause.
 */
export function isBehindSuspect(turn: Turn, { steps }: JobState, step: StepState): boolean {
  const isSuspect = ({ record, losses }: StepState): boolean => losses > 0 && !isFinal(record.status);
  const isRunning = (other: StepState): boolean =>
    other !== step && isAtWork(other) && isOwnStep(turn.step(other));
  return steps.some(isSuspect) && steps.some(isRunning);
}
