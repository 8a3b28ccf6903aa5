import { isOwnStep } from '../definition/compile-code.ts';
import type { StepPart } from '../run/run-parts.ts';
import { isFinal } from '../states.ts';

/** After the loss of a process that several steps ran in, one at a time runs, so that the one at fault is known. */
export function isBehindSuspect(part: StepPart): boolean {
  const { steps } = part.job;
  const isSuspect = ({ record, losses }: StepPart): boolean => losses > 0 && !isFinal(record.status);
  const runs = (other: StepPart): boolean => other !== part && isOwnStep(other.step) && other.abort !== null;
  return steps.some(isSuspect) && steps.some(runs);
}
