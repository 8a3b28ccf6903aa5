import { isStepName } from '../../../contracts/step-name.ts';
import { RunnerFailure } from '../failure.ts';
import { type Branch, branchFor, runInBranch, stepId } from './branches.ts';
import { LazyStep } from './lazy-step.ts';
import type { Replay } from './replay.ts';
import type { StepRequest } from './replay-link.ts';

/** Creates the steps of one replay. A step starts when the workflow function awaits the step. */
export class StepFactory {
  readonly #replay: Replay;
  readonly #unstarted = new Set<LazyStep<unknown>>();
  readonly #requests = new WeakMap<LazyStep<unknown>, StepRequest>();

  constructor(replay: Replay) {
    this.#replay = replay;
  }

  /** Names of steps that were created but not awaited. */
  get unstarted(): string[] {
    return [...this.#unstarted].map(({ name }) => name);
  }

  /** Creates a step. `what` is the name of the called method, used in error messages. */
  make(what: string, name: string, request: StepRequest): Promise<never> {
    const branch = branchFor(this.#replay.trunk, `${what}("${name}")`);
    if (!isStepName(name))
      throw wrong(`${what}: a step's name is 1 to 64 letters, digits and _ . -, not ${JSON.stringify(name)}`);
    const lazy: LazyStep<unknown> = new LazyStep(name, () =>
      this.#begin(lazy, branch, stepId(branch, name), request),
    );
    this.#requests.set(lazy, request);
    this.#unstarted.add(lazy);
    return lazy as Promise<unknown> as Promise<never>;
  }

  /**
   * Returns the function that a branch of `ctx.all` runs for an item. An item is a function or a step. The id of a step
   * comes from the parent branch.
   */
  bodyOf(parent: Branch, item: unknown, index: number): (branch: Branch) => Promise<unknown> {
    if (item instanceof LazyStep) {
      const id = stepId(parent, item.name);
      const request = this.#requests.get(item)!;
      // `joint` delays the next replay until all items of `ctx.all` have ended. A step with a function is not joint,
      // because the function runs only during a replay.
      const asked: StepRequest = request.run ? request : { ...request, joint: true };
      return (branch) => item.startAs(() => this.#begin(item, branch, id, asked));
    }
    if (typeof item === 'function') return (branch) => runInBranch(branch, async () => item());
    throw wrong(
      `ctx.all: item ${index} is neither a step nor a function. Pass a step such as ctx.step(…), or async () => { … }`,
    );
  }

  #begin(lazy: LazyStep<unknown>, branch: Branch, id: string, request: StepRequest): Promise<unknown> {
    this.#unstarted.delete(lazy);
    return this.#replay.take(branch, id, request);
  }
}

export function wrong(what: string): RunnerFailure {
  return new RunnerFailure('VALIDATION_ERROR', `${what}.`);
}
