import type { RecalledStep, StepAnswer } from '../../../../contracts/index.ts';
import { isOwnStep } from '../definition/compile-code.ts';
import type { StepPart } from '../run/run-parts.ts';
import { isFinal } from '../states.ts';
import type { KnownStep } from './code-steps.ts';

const MAX_STEPS = 1000;
/** Maximum size of a page in characters of JSON. */
const MAX_CHARS = 512 * 1024;

export interface RecalledPage {
  told: Array<{ part: StepPart; step: RecalledStep }>;
  /** Index at which the next page starts; null at the end. */
  next: number | null;
}

/**
 * Returns the steps from index `after` on that have ended or wait outside the function. A replay reads them in pages
 * instead of one by one.
 * @spec docs/decisions/0175
 */
export function recalledPage(
  steps: readonly KnownStep[],
  after: number,
  answerOf: (part: StepPart) => StepAnswer | undefined,
): RecalledPage {
  const told: RecalledPage['told'] = [];
  let chars = 0;
  for (let place = after; place < steps.length; place++) {
    if (told.length === MAX_STEPS || chars > MAX_CHARS) return { told, next: place };
    const { part, found } = steps[place]!;
    const answer = isKnown(part) ? answerOf(part) : undefined;
    if (!answer) continue;
    const { id, branch, uses } = found;
    told.push({ part, step: { id, branch, place: found.place, uses, answer } });
    chars += (part.record.output ?? part.record.error ?? '').length;
  }
  return { told, next: null };
}

function isKnown({ record, step }: StepPart): boolean {
  return isFinal(record.status) || (record.status === 'waiting' && !isOwnStep(step));
}
