import { AsyncLocalStorage } from 'node:async_hooks';
import { createHash } from 'node:crypto';
import { RunnerFailure } from '../failure.ts';

/** A sequential part of a workflow function: the main part (trunk), or a branch that `ctx.all` runs concurrently. */
export interface Branch {
  /**
   * Id of the branch, such as `1-0` for the first branch of the first `ctx.all`. A branch nested in `1-0` has an id
   * such as `1-0.2-1`. The main part has an empty id.
   */
  id: string;
  /** Number of steps reached by the branch so far. */
  place: number;
  /** Number of `ctx.all` calls made by the branch so far. */
  forks: number;
  /** Id of the step that the branch awaits, or null. The value is `ctx.all` while child branches run. */
  busyWith: string | null;
  /** End time of the branch's latest step. `ctx.now` returns this time in the branch. */
  now: number;
  draws: number;
  /** Whether the branch has received a CancelledError. Later steps of the branch belong to the workflow's clean-up. */
  isCancelled: boolean;
  shields: number;
  /** Number of messages that the branch has emitted outside of steps. */
  emits: number;
  /** Number of uses of each step name in the branch. Used to make step ids unique. */
  names: Map<string, number>;
}

/**
 * The current branch, and the id of the step whose function is running. `inStep` is null while no step function runs.
 */
const place = new AsyncLocalStorage<{ branch: Branch; inStep: string | null; emits: number }>();

/** Creates a branch that inherits the clean-up state of its parent branch. */
export function newBranch(
  id: string,
  now: number,
  { isCancelled, shields }: Pick<Branch, 'isCancelled' | 'shields'>,
): Branch {
  return {
    ...{ id, place: 0, forks: 0, busyWith: null, now, draws: 0, emits: 0 },
    ...{ isCancelled, shields, names: new Map() },
  };
}

export const runInBranch = <T>(branch: Branch, work: () => T): T =>
  place.run({ branch, inStep: null, emits: 0 }, work);
export const runInStep = <T>(branch: Branch, inStep: string, work: () => T): T =>
  place.run({ branch, inStep, emits: 0 }, work);

export const currentBranch = (trunk: Branch): Branch => place.getStore()?.branch ?? trunk;

/**
 * Returns the current branch. Throws inside a step function, because a nested step would repeat with each attempt and
 * be recorded twice.
 */
export function branchFor(trunk: Branch, what: string): Branch {
  const found = place.getStore();
  if (found?.inStep != null) {
    throw new RunnerFailure(
      'VALIDATION_ERROR',
      `${what} was called inside the step "${found.inStep}": steps cannot be nested. Call it outside of the step.`,
      { step: found.inStep },
    );
  }
  return found?.branch ?? trunk;
}

/**
 * Returns the id of a step, such as `charge`. The second step of that name is `charge:2`. In the branch `1-0`, the id
 * is `charge@1-0`.
 */
export function stepId(branch: Branch, name: string): string {
  const nth = (branch.names.get(name) ?? 0) + 1;
  branch.names.set(name, nth);
  return `${name}${nth === 1 ? '' : `:${nth}`}${branch.id === '' ? '' : `@${branch.id}`}`;
}

/** Returns 32 pseudo-random bytes that are the same in each replay. */
export function draw(seed: string, branch: Branch): Buffer {
  return createHash('sha256')
    .update(`${seed}\n${branch.id}\n${branch.draws++}`)
    .digest();
}

/**
 * Returns the place of a call of `ctx.emit`, which is the same in each replay and in each attempt of a step: the step
 * or the branch, and the number of the call in it.
 */
export function emitPlace(trunk: Branch): string {
  const found = place.getStore();
  if (found?.inStep != null) return `step ${found.inStep} ${++found.emits}`;
  const branch = found?.branch ?? trunk;
  return `branch ${branch.id} ${++branch.emits}`;
}

export const isInStep = (): boolean => place.getStore()?.inStep != null;

/** Returns the error for a step that was started while its branch awaits another step. */
export function sideBySide(busyWith: string, id: string): RunnerFailure {
  return new RunnerFailure(
    'VALIDATION_ERROR',
    `"${id}" was started before "${busyWith}" had ended. Await one after the other, or run them concurrently with ctx.all.`,
    { step: id, busyWith },
  );
}
