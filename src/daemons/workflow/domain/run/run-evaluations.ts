import type { RunRecord } from '../../../../store/ports/index.ts';
import type { Evaluator } from '../definition/evaluator.ts';
import type { Scope } from '../definition/expressions.ts';
import type { Evaluable } from '../definition/templates.ts';
import type { RunJournal } from './run-journal.ts';
import type { RunRecorder } from './run-recorder.ts';
import type { RunState } from './run-state.ts';

export interface RunEvaluationsDeps {
  run: RunRecord;
  evaluator: Evaluator;
  journal: RunJournal;
  recorder: RunRecorder;
  state: RunState;
  /** It was ready before this boot, so that an earlier one may have died of its expressions. */
  isFromBefore: boolean;
}

/** What the expressions of a run came to, as far as the course of the run depends on it. */
export interface RunEvaluations {
  /**
   * The value for a part of the run, always the same. Undefined while it is worked on: then `advance` is called once it
   * is known. Throws TemplateError.
   */
  ask<Value>(part: object, what: Evaluable<Value>, scope: () => Scope): { value: Value } | undefined;
  /** A value for this once, when it is known at once. Throws TemplateError. */
  now<Value>(what: Evaluable<Value>, scope: Scope): { value: Value } | undefined;
  /** A value for this once, begun when the run is marked as being at it. Undefined when another boot holds the run by now. */
  confined<Value>(what: Evaluable<Value>, scope: Scope): Promise<{ value: Value } | undefined>;
  readonly isPending: boolean;
}

type Answer = 'pending' | { value: unknown } | { error: unknown };

export function createRunEvaluations(deps: RunEvaluationsDeps): RunEvaluations {
  const { run, evaluator, journal, recorder, state, isFromBefore } = deps;
  const answers = new WeakMap<object, Map<object, Answer>>();
  let pending = 0;

  /** Of a run from before this boot nothing is evaluated in place until a mark of it is durable. */
  function now<Value>(what: Evaluable<Value>, scope: Scope): { value: Value } | undefined {
    return isFromBefore && what.expressions.length > 0 ? undefined : evaluator.now(what, scope);
  }

  /** What may bring the service down begins only once the run is known to be at it. */
  async function confined<Value>(
    what: Evaluable<Value>,
    scope: Scope,
  ): Promise<{ value: Value } | undefined> {
    recorder.enterFlight();
    try {
      // The write of what led here, which follows in this turn, takes the mark along.
      await null;
      if (!(await journal.flush())) return undefined;
      const known = isFromBefore ? evaluator.now(what, scope) : undefined;
      return known ?? { value: await evaluator.later(what, scope, run.tenantId) };
    } finally {
      recorder.leaveFlight();
    }
  }

  async function settle(known: Map<object, Answer>, what: Evaluable<unknown>, scope: Scope): Promise<void> {
    pending++;
    try {
      const answer = await confined(what, scope);
      if (!answer) return;
      known.set(what, answer);
    } catch (error) {
      known.set(what, { error });
    } finally {
      pending--;
    }
    if (!state.departure) state.advance();
  }

  return {
    now,
    confined,
    ask<Value>(part: object, what: Evaluable<Value>, scope: () => Scope) {
      const answer = answers.get(part)?.get(what);
      if (answer === 'pending') return undefined;
      if (answer && 'error' in answer) throw answer.error;
      if (answer) return answer as { value: Value };
      const given = scope();
      const atOnce = now(what, given);
      if (atOnce) return atOnce;
      const known = answers.get(part) ?? new Map<object, Answer>();
      answers.set(part, known.set(what, 'pending'));
      void settle(known, what, given);
      return undefined;
    },
    get isPending() {
      return pending > 0;
    },
  };
}
