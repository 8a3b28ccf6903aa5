import { AsyncLocalStorage } from 'node:async_hooks';
import { createHash } from 'node:crypto';
import { RunnerFailure } from '../failure.ts';

/** One line of the function: its trunk, or one of the things that `ctx.all` runs side by side. */
export interface Branch {
  /** '' for the trunk, `1-0` for the first of the first `all`, `1-0.2-1` within that. */
  id: string;
  /** Steps it has come to. */
  place: number;
  /** How often `all` was called. */
  forks: number;
  /** The step it waits for. */
  busyWith: string | null;
  /** When its latest step ended. */
  now: number;
  draws: number;
  /** Its steps are part of a clean-up: it was told that the run is being ended, or stands in `ctx.nonCancellable`. */
  isTold: boolean;
  shields: number;
  /** How often each name was taken. */
  names: Map<string, number>;
}

/** Where the running code stands: in a branch of the function, or inside a step. */
const place = new AsyncLocalStorage<{ branch: Branch; inStep: string | null }>();

/** A branch of a clean-up is one of it. */
export function newBranch(
  id: string,
  now: number,
  { isTold, shields }: Pick<Branch, 'isTold' | 'shields'>,
): Branch {
  return { id, place: 0, forks: 0, busyWith: null, now, draws: 0, isTold, shields, names: new Map() };
}

export const runInBranch = <T>(branch: Branch, work: () => T): T => place.run({ branch, inStep: null }, work);
export const runInStep = <T>(branch: Branch, inStep: string, work: () => T): T =>
  place.run({ branch, inStep }, work);

export const currentBranch = (trunk: Branch): Branch => place.getStore()?.branch ?? trunk;

/** The branch that runs now. Throws inside a step: what is there would be run again with the step, and remembered twice. */
export function branchFor(trunk: Branch, what: string): Branch {
  const found = place.getStore();
  if (found?.inStep != null) {
    throw new RunnerFailure(
      'VALIDATION_ERROR',
      `${what} was called inside the step "${found.inStep}": a step holds no other. Call it beside the step.`,
      { step: found.inStep },
    );
  }
  return found?.branch ?? trunk;
}

/** `charge`, `charge:2` for the second of that name, `charge@1-0` in a branch. */
export function stepId(branch: Branch, name: string): string {
  const nth = (branch.names.get(name) ?? 0) + 1;
  branch.names.set(name, nth);
  return `${name}${nth === 1 ? '' : `:${nth}`}${branch.id === '' ? '' : `@${branch.id}`}`;
}

/** 32 bytes of chance that are the same in each pass. */
export function draw(seed: string, branch: Branch): Buffer {
  return createHash('sha256')
    .update(`${seed}\n${branch.id}\n${branch.draws++}`)
    .digest();
}

export const isInStep = (): boolean => place.getStore()?.inStep != null;
