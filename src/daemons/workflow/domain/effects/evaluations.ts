import type { JsonValue } from '../../../../store/ports/index.ts';
import type { Evaluator } from '../definition/evaluator.ts';
import type { Scope } from '../definition/expressions.ts';
import type { Evaluable } from '../definition/templates.ts';
import type { Effect, EvaluationTarget } from '../run/effects.ts';
import type { EvaluatedInput, RunEvent } from '../run/events.ts';
import { evaluationFailure } from '../run/failure.ts';
import type { Program } from '../run/program.ts';
import type { Inspections } from './inspections.ts';

export interface EvaluationDeps {
  program: Program;
  tenantId: string;
  evaluator: Evaluator;
  inspections: Inspections;
  /**
   * Whether the run was ready before this start of the service. An evaluation of such a run might have crashed the
   * previous service process.
   */
  isFromBefore: boolean;
  dispatch(event: RunEvent): void;
}

/** Evaluates expressions of a run in a worker thread. */
export class Evaluations {
  readonly #deps: EvaluationDeps;

  constructor(deps: EvaluationDeps) {
    this.#deps = deps;
  }

  async evaluate({ id, target, scope }: Extract<Effect, { type: 'evaluate' }>): Promise<void> {
    let answer: Extract<RunEvent, { type: 'evaluated' }>['answer'];
    try {
      answer = { value: await this.#valueOf(this.#evaluableOf(target), scope) };
    } catch (error) {
      answer = { failure: evaluationFailure(error) };
    }
    this.#deps.dispatch({ type: 'evaluated', id, answer });
  }

  async evaluateInput({ attempt, scope }: Extract<Effect, { type: 'attempt.evaluate' }>): Promise<void> {
    const { program, inspections, dispatch } = this.#deps;
    const { step } = attempt;
    const { idempotencyKey: template, with: values } = program.stepAt(step);
    let input: EvaluatedInput;
    try {
      const idempotencyKey = template && String(await this.#valueOf(template, scope));
      input = { idempotencyKey, input: (await this.#valueOf(values, scope)) as Record<string, JsonValue> };
    } catch (error) {
      input = { failure: evaluationFailure(error) };
    }
    const facts = inspections.factsOf(step);
    dispatch({ type: 'attempt.evaluated', step, attempt: attempt.attempt, input, facts });
  }

  async #valueOf<Value>(what: Evaluable<Value>, scope: Scope): Promise<Value> {
    const { evaluator, tenantId, isFromBefore } = this.#deps;
    const known = isFromBefore ? evaluator.now(what, scope) : undefined;
    return known ? known.value : evaluator.later(what, scope, tenantId);
  }

  #evaluableOf(target: EvaluationTarget): Evaluable<JsonValue> {
    const { program } = this.#deps;
    switch (target.of) {
      case 'step.if':
        return program.stepAt(target.step).condition;
      case 'job.if':
        return program.job(target.job).condition;
      case 'job.matrix':
        return program.job(target.job).matrix!;
      case 'job.outputs':
        return program.job(target.job).outputs;
      case 'run.outputs':
        return program.workflow.outputs!;
    }
  }
}
