import type { EnterStep } from '../../../../contracts/index.ts';
import type { StepRecord } from '../../../../store/ports/index.ts';

/** A step that the code requested. */
export interface FoundStep extends EnterStep {
  /** Seed and start time of the original run, for a step that a rerun took over. */
  origin?: { seed: string; startedAt: number } | undefined;
}

export function foundIn({ found }: Pick<StepRecord, 'found'>): FoundStep {
  return JSON.parse(found!) as FoundStep;
}
