import type { RecalledStep, StepAnswer } from '../../../../contracts/index.ts';
import { isOwnStep } from '../definition/compile-code.ts';
import type { KnownSteps } from '../run/known-steps.ts';
import { type JobState, type StepState, stepAtIndex } from '../run/state.ts';
import { isFinal } from '../states.ts';
import type { Turn } from './turn.ts';

const MAX_STEPS = 1000;
/** Maximum size of a page of recorded steps, in characters of JSON. */
const MAX_CHARS = 512 * 1024;

export interface RecalledPage {
  steps: RecalledStep[];
  /** Step index in the run for each entry of `steps`. */
  indexes: number[];
  /** Start position of the next page, or null on the last page. */
  next: number | null;
}

/**
 * Returns a page of recorded steps after the position `after`. The steps have ended or wait outside the function.
 * Without pages, a replay would request thousands of steps one by one. @spec docs/decisions/0175
 */
export function recalledPage(
  turn: Turn,
  job: JobState,
  { found: known }: KnownSteps,
  after: number,
  answerOf: (step: StepState) => StepAnswer | undefined,
): RecalledPage {
  const page: RecalledPage = { steps: [], indexes: [], next: null };
  const all = [...known];
  let chars = 0;
  for (let position = after; position < all.length; position++) {
    if (page.steps.length === MAX_STEPS || chars > MAX_CHARS) return { ...page, next: position };
    const [index, found] = all[position]!;
    const step = stepAtIndex(job, index);
    const answer = isKnown(turn, step) ? answerOf(step) : undefined;
    if (!answer) continue;
    const { id, branch, uses, place } = found;
    page.steps.push({ id, branch, place, uses, answer });
    page.indexes.push(index);
    chars += (step.record.output ?? step.record.error ?? '').length;
  }
  return page;
}

function isKnown(turn: Turn, step: StepState): boolean {
  const { status } = step.record;
  return isFinal(status) || (status === 'waiting' && !isOwnStep(turn.step(step)));
}
