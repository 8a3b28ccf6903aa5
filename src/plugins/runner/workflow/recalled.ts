import type { EnterStep, RecalledStep, StepAnswer } from '../../../contracts/index.ts';

/** Recorded steps of earlier replays that the workflow function has not reached yet in this replay. */
export class Recalled {
  readonly #steps = new Map<string, RecalledStep>();

  add(steps: readonly RecalledStep[]): void {
    for (const step of steps) this.#steps.set(step.id, step);
  }

  /** Returns the recorded answer for a step. Returns undefined if the step is new or differs from the recorded step. */
  take({ id, branch, place, uses }: EnterStep): StepAnswer | undefined {
    const step = this.#steps.get(id);
    if (!step || step.branch !== branch || step.place !== place || step.uses !== uses) return undefined;
    this.#steps.delete(id);
    return step.answer;
  }

  /** Returns the id of the first unreached step, in the order of earlier replays. */
  missed(): string | undefined {
    const [first] = this.#steps.keys();
    return first;
  }

  /** Returns the id of the unreached step that ended first in earlier replays. */
  missedByEnd(): string | undefined {
    let first: { id: string; order: number } | undefined;
    for (const { id, answer } of this.#steps.values())
      if ('order' in answer && answer.order < (first?.order ?? Number.POSITIVE_INFINITY))
        first = { id, order: answer.order };
    return first?.id;
  }
}
