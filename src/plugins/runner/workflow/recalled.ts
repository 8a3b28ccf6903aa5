import type { EnterStep, RecalledStep, StepAnswer } from '../../../contracts/index.ts';

/** The steps of earlier passes that this one was told of, until the function comes to them. */
export class Recalled {
  readonly #steps = new Map<string, RecalledStep>();

  add(steps: readonly RecalledStep[]): void {
    for (const step of steps) this.#steps.set(step.id, step);
  }

  /** The answer to a step that was recalled. A step that has changed since is asked for: the run says how. */
  take({ id, branch, place, uses }: EnterStep): StepAnswer | undefined {
    const step = this.#steps.get(id);
    if (!step || step.branch !== branch || step.place !== place || step.uses !== uses) return undefined;
    this.#steps.delete(id);
    return step.answer;
  }

  /** The first in the order in which they were found. */
  missed(): string | undefined {
    const [first] = this.#steps.keys();
    return first;
  }

  /** The first in the order in which they ended. */
  missedByEnd(): string | undefined {
    let first: { id: string; order: number } | undefined;
    for (const { id, answer } of this.#steps.values())
      if ('order' in answer && answer.order < (first?.order ?? Number.POSITIVE_INFINITY))
        first = { id, order: answer.order };
    return first?.id;
  }
}
