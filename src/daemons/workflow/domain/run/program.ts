import type { StepRecord } from '../../../../store/ports/index.ts';
import type { CompiledJob, CompiledStep, CompiledWorkflow } from '../definition/compiled-workflow.ts';
import { type EvaluateWithin, evaluateWithin } from '../definition/evaluator.ts';
import { foundIn } from '../definition/found-step.ts';
import { jobIdOf } from './parts.ts';

/**
 * Compiled workflow of a run. Not part of the run state, because the compiled workflow never changes while the run is
 * in memory.
 */
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
   * Returns the compiled job of a job key. A matrix job has one key per combination, such as `build:2` for the job
   * `build`.
   */
  job(key: string): CompiledJob {
    return this.#jobs.get(jobIdOf(key))!;
  }

  step({ record }: { record: StepRecord }): CompiledStep {
    return this.#known(record.jobKey, record.index) ?? this.#compile(record);
  }

  /**
   * Returns the compiled step of a step key. For a workflow written in code, `step` must have compiled the step before.
   */
  stepAt(key: string): CompiledStep {
    const gap = key.lastIndexOf(' ');
    return this.#known(key.slice(0, gap), Number(key.slice(gap + 1)))!;
  }

  /** Removes a step whose request was rejected, so that another step can use the index. */
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
