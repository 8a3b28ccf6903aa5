import { isOwnStep } from '../definition/compile-code.ts';
import type { StepPart } from '../run/run-parts.ts';
import { isFinal } from '../states.ts';

/** After a process with several steps is lost, steps run one at a time to find the one at fault. */
export function isBehindSuspect(part: StepPart): boolean {
  const { steps } = part.job;
  const isSuspect = ({ record, losses }: StepPart): boolean => losses > 0 && !isFinal(record.status);
  const runs = (other: StepPart): boolean => other !== part && isOwnStep(other.step) && other.abort !== null;
  return steps.some(isSuspect) && steps.some(runs);
}
