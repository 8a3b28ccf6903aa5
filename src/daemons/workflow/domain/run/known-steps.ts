import type { StepRecord } from '../../../../store/ports/index.ts';
import { type FoundStep, foundIn } from '../definition/found-step.ts';

/** Value of `uses` for steps that start a child run. */
export const CHILD = 'workflow';

/** Steps that a workflow function has reached. Indexes follow the order in which the function reached the steps. */
export interface KnownSteps {
  found: Map<number, FoundStep>;
  byPlace: Map<string, number>;
  byId: Map<string, number>;
  /** Id of the `ctx.all` call that contains the step, by step index. */
  forks: Map<number, string>;
  steps: number;
  children: number;
}

export function knownSteps(records: readonly StepRecord[]): KnownSteps {
  const known: KnownSteps = {
    ...{ found: new Map(), byPlace: new Map(), byId: new Map(), forks: new Map() },
    ...{ steps: 0, children: 0 },
  };
  for (const record of records) rememberStep(known, record.index, foundIn(record));
  return known;
}

export function rememberStep(known: KnownSteps, index: number, found: FoundStep): void {
  if (found.uses === CHILD) known.children++;
  else known.steps++;
  known.found.set(index, found);
  known.byPlace.set(placeOf(found), index);
  known.byId.set(found.id, index);
  if (found.joint) known.forks.set(index, found.branch.slice(0, found.branch.lastIndexOf('-')));
}

export function placeOf({ branch, place }: Pick<FoundStep, 'branch' | 'place'>): string {
  return `${place} ${branch}`;
}
