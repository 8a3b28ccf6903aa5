import type { MaybePromise } from '../../../../kit/data/maybe-promise.ts';
import { Budget, OverBudget } from '../../../../kit/expressions/budget.ts';
import type { JsonValue } from '../../../../store/ports/index.ts';
import type { Scope, Variable } from './expressions.ts';
import type { CheckedInput, CheckedPart, InputSchema } from './input-schema.ts';
import type { Evaluable, Written } from './templates.ts';

/** A task for a worker thread with limited time and memory. */
export type ConfinedTask =
  | { kind: 'evaluate'; written: Written; scope: Partial<Scope> }
  | { kind: 'check'; schema: object; input: JsonValue; part: CheckedPart };

/** Worker threads for expensive evaluations. */
export interface ConfinedThreads {
  /** Runs a task in a worker thread. Tasks are scheduled round robin by tenant. Rejects with TemplateError. */
  run(task: ConfinedTask, tenantId: string): Promise<unknown>;
  close(): Promise<void>;
}

/** Evaluates synchronously within a budget. Throws TemplateError or OverBudget. */
export type EvaluateWithin = <Value>(what: Evaluable<Value>, scope: Scope, budget: Budget) => Value;

export const evaluateWithin: EvaluateWithin = (what, scope, budget) => what.evaluate(scope, budget);

/** Evaluates cheap expressions synchronously, and expensive expressions in a thread with limited time and memory. */
export interface Evaluator {
  /**
   * Evaluates within a budget that the caller provides. `unitsLeft` and `spend` apply to the budget units of the
   * current event loop turn.
   */
  within: EvaluateWithin;
  unitsLeft(): number;
  spend(units: number): void;
  /**
   * Returns the value, or undefined if a synchronous evaluation would be too expensive. Throws TemplateError if the
   * evaluation fails.
   */
  now<Value>(what: Evaluable<Value>, scope: Scope): { value: Value } | undefined;
  /** Evaluates in a worker thread and resolves with the value. Rejects with TemplateError. */
  later<Value>(what: Evaluable<Value>, scope: Scope, tenantId: string): Promise<Value>;
  /**
   * Returns the value synchronously if the evaluation is cheap, or otherwise a promise. Throws or rejects with
   * TemplateError if the evaluation fails.
   */
  evaluate<Value>(what: Evaluable<Value>, scope: Scope, tenantId: string): MaybePromise<Value>;
  /**
   * Checks a value against its schema. Uses a worker thread if the check might be expensive. Throws or rejects with
   * TemplateError if the check cannot be completed.
   */
  check(
    schema: InputSchema,
    value: JsonValue,
    options: { part: CheckedPart; tenantId: string },
  ): MaybePromise<CheckedInput>;
}

/** Maximum cost of one synchronous evaluation, in budget units. Equals about half a millisecond. */
export const UNITS_PER_EVALUATION = 5000;
/** Maximum cost of all synchronous evaluations in one event loop turn, in budget units. */
const UNITS_IN_A_TURN = 100_000;

export function createEvaluator(threads: ConfinedThreads): Evaluator {
  let leftInTurn = UNITS_IN_A_TURN;

  function spend(units: number): void {
    if (units === 0) return;
    if (leftInTurn === UNITS_IN_A_TURN)
      setImmediate(() => {
        leftInTurn = UNITS_IN_A_TURN;
      });
    leftInTurn -= units;
  }

  /**
   * Runs work synchronously within the remaining budget of this event loop turn. Returns undefined if the work exceeds
   * the budget.
   */
  function atOnce<Value>(work: (budget: Budget) => Value): { value: Value } | undefined {
    const given = Math.min(UNITS_PER_EVALUATION, leftInTurn);
    const budget = new Budget(given, false);
    try {
      return { value: work(budget) };
    } catch (error) {
      if (error instanceof OverBudget) return undefined;
      throw error;
    } finally {
      spend(given - Math.max(0, budget.left));
    }
  }

  function now<Value>(what: Evaluable<Value>, scope: Scope): { value: Value } | undefined {
    return atOnce((budget) => what.evaluate(scope, budget));
  }

  async function later<Value>(what: Evaluable<Value>, scope: Scope, tenantId: string): Promise<Value> {
    const task: ConfinedTask = { kind: 'evaluate', written: what.written, scope: neededOf(what, scope) };
    return (await threads.run(task, tenantId)) as Value;
  }

  return {
    within: evaluateWithin,
    unitsLeft: () => leftInTurn,
    spend,
    now,
    later,
    evaluate(what, scope, tenantId) {
      const known = now(what, scope);
      return known ? known.value : later(what, scope, tenantId);
    },
    check(schema, input, { part, tenantId }) {
      const known = atOnce((budget) => {
        schema.spendOnCheck(input, budget);
        return schema.check(input);
      });
      if (known) return known.value;
      const task: ConfinedTask = { kind: 'check', schema: schema.written, input, part };
      return threads.run(task, tenantId) as Promise<CheckedInput>;
    },
  };
}

/** Returns only those values of a scope that the expressions use. A run can hold megabytes of other data. */
function neededOf({ expressions }: Evaluable<unknown>, scope: Scope): Partial<Scope> {
  const needed = new Map<Variable, Set<string> | 'all'>();
  for (const { expression } of expressions)
    for (const [variable, names] of expression.uses) {
      const before = needed.get(variable) ?? new Set();
      if (names === 'all' || before === 'all') needed.set(variable, 'all');
      else needed.set(variable, new Set([...before, ...names]));
    }
  const parts = Array.from(needed, ([variable, names]) => [variable, partOf(scope[variable], names)]);
  return { ...Object.fromEntries(parts), state: scope.state };
}

function partOf(value: JsonValue | undefined, names: Set<string> | 'all'): JsonValue | undefined {
  if (names === 'all' || typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  return Object.fromEntries(
    [...names].filter((name) => Object.hasOwn(value, name)).map((name) => [name, value[name]!]),
  );
}
