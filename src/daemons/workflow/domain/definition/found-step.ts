import type { EnterStep } from '../../../../contracts/index.ts';
import type { StepRecord } from '../../../../store/ports/index.ts';

/** A step that the function of a workflow written in code requested. */
export interface FoundStep extends EnterStep {
  /** Seed and start time of the original run. Set if this run is a rerun that reuses the step. */
  origin?: { seed: string; startedAt: number } | undefined;
}

export function foundIn({ found }: Pick<StepRecord, 'found'>): FoundStep {
  return JSON.parse(found!) as FoundStep;
}
