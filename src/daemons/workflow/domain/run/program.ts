import type { StepRecord } from '../../../../store/ports/index.ts';
import type { CompiledJob, CompiledStep, CompiledWorkflow } from '../definition/compiled-workflow.ts';
import { type EvaluateWithin, evaluateWithin } from '../definition/evaluator.ts';
import { foundIn } from '../definition/found-step.ts';
import { jobIdOf } from './parts.ts';

/** The compiled workflow of a run. It never changes while the run is in memory, so it is not part of the state. */
export class Program {
  readonly workflow: CompiledWorkflow;
  readonly evaluate: EvaluateWithin;
  readonly #jobs: ReadonlyMap<string, CompiledJob>;
  readonly #found = new Map<number, CompiledStep>();

  constructor(workflow: CompiledWorkflow, evaluate: EvaluateWithin = evaluateWithin) {
    this.workflow = workflow;
    this.evaluate = evaluate;
    this.#jobs = new Map(workflow.jobs.map((job) => [job.id, job]));
  }

  /**
   * Returns the compiled job of a job key. Jobs with a matrix have one key per combination: `build:2` belongs to
   * `build`.
   */
  job(key: string): CompiledJob {
    return this.#jobs.get(jobIdOf(key))!;
  }

  step({ record }: { record: StepRecord }): CompiledStep {
    return this.#known(record.jobKey, record.index) ?? this.#compile(record);
  }

  /** Returns the compiled step of a step key. A step of code is known only after `step` has compiled it. */
  stepAt(key: string): CompiledStep {
    const gap = key.lastIndexOf(' ');
    return this.#known(key.slice(0, gap), Number(key.slice(gap + 1)))!;
  }

  /** Removes a step of code whose request was rejected, because another step may take its index. */
  forget(index: number): void {
    this.#found.delete(index);
  }

  #known(jobKey: string, index: number): CompiledStep | undefined {
    return this.workflow.code ? this.#found.get(index) : this.job(jobKey).steps[index];
  }

  #compile(record: StepRecord): CompiledStep {
    const step = this.workflow.code!.stepOf(foundIn(record), record.index);
    this.#found.set(record.index, step);
    return step;
  }
}
