import type { EnterStep, RecalledStep, StepAnswer } from '../../../contracts/index.ts';

/** Steps of earlier replays that were fetched for this replay and that the function has not reached yet. */
export class Recalled {
  readonly #steps = new Map<string, RecalledStep>();

  add(steps: readonly RecalledStep[]): void {
    for (const step of steps) this.#steps.set(step.id, step);
  }

  /**
   * Returns the recorded answer to a step, or undefined if the step is new or differs from the recorded step. The run
   * reports a difference as changed code.
   */
  take({ id, branch, place, uses }: EnterStep): StepAnswer | undefined {
    const step = this.#steps.get(id);
    if (!step || step.branch !== branch || step.place !== place || step.uses !== uses) return undefined;
    this.#steps.delete(id);
    return step.answer;
  }

  /** Id of the first unreached step, in the order in which earlier replays reached the steps. */
  missed(): string | undefined {
    const [first] = this.#steps.keys();
    return first;
  }

  /** Id of the unreached step that ended first. */
  missedByEnd(): string | undefined {
    let first: { id: string; order: number } | undefined;
    for (const { id, answer } of this.#steps.values())
      if ('order' in answer && answer.order < (first?.order ?? Number.POSITIVE_INFINITY))
        first = { id, order: answer.order };
    return first?.id;
  }
}
