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
  /** The run was ready before this boot, so an earlier boot may have crashed on its expressions. */
  isFromBefore: boolean;
}

/** Evaluates the expressions that decide the course of a run. */
export interface RunEvaluations {
  /**
   * Returns the value for a part of the run, always the same. Undefined while a thread evaluates it; `advance` is
   * called when the value is known. Throws TemplateError.
   */
  ask<Value>(part: object, what: Evaluable<Value>, scope: () => Scope): { value: Value } | undefined;
  /** Evaluates once; undefined when a thread is needed. Throws TemplateError. */
  now<Value>(what: Evaluable<Value>, scope: Scope): { value: Value } | undefined;
  /** Evaluates once, after the run is marked as in flight. Undefined when another boot owns the run. */
  confined<Value>(what: Evaluable<Value>, scope: Scope): Promise<{ value: Value } | undefined>;
  readonly isPending: boolean;
}

type Answer = 'pending' | { value: unknown } | { error: unknown };

export function createRunEvaluations(deps: RunEvaluationsDeps): RunEvaluations {
  const { run, evaluator, journal, recorder, state, isFromBefore } = deps;
  const answers = new WeakMap<object, Map<object, Answer>>();
  let pending = 0;

  /** Evaluates nothing in place for a run from before this boot: its in-flight mark must be durable first. */
  function now<Value>(what: Evaluable<Value>, scope: Scope): { value: Value } | undefined {
    return isFromBefore && what.expressions.length > 0 ? undefined : evaluator.now(what, scope);
  }

  /** An expression can crash the service, so evaluation starts only after the in-flight mark is durable. */
  async function confined<Value>(
    what: Evaluable<Value>,
    scope: Scope,
  ): Promise<{ value: Value } | undefined> {
    recorder.enterFlight();
    try {
      // Waits a microtask, so that the caller's own write includes the mark.
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
