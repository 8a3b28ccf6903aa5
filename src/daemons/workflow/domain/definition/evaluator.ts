import type { MaybePromise } from '../../../../kit/maybe-promise.ts';
import type { JsonValue } from '../../../../store/ports/index.ts';
import { Budget, OverBudget } from './budget.ts';
import type { Variable } from './cel-environment.ts';
import type { Scope } from './expressions.ts';
import type { CheckedInput, CheckedPart, InputSchema } from './input-schema.ts';
import type { Evaluable, Written } from './templates.ts';

/** Work for a thread whose time and memory are limited. */
export type ConfinedTask =
  | { kind: 'evaluate'; written: Written; scope: Partial<Scope> }
  | { kind: 'check'; schema: object; input: JsonValue; part: CheckedPart };

/** Threads that evaluate what may take long. */
export interface ConfinedThreads {
  /** Rejects with TemplateError. Tenants take turns. */
  run(task: ConfinedTask, tenantId: string): Promise<unknown>;
  close(): Promise<void>;
}

/** Evaluates expressions: small ones at once, all others in a thread with limits of time and memory. */
export interface Evaluator {
  /** The value when that is cheap. Throws TemplateError. */
  now<Value>(what: Evaluable<Value>, scope: Scope): { value: Value } | undefined;
  /** Rejects with TemplateError. */
  later<Value>(what: Evaluable<Value>, scope: Scope, tenantId: string): Promise<Value>;
  /** One or the other. */
  evaluate<Value>(what: Evaluable<Value>, scope: Scope, tenantId: string): MaybePromise<Value>;
  /** Holds a value against its schema, in a thread where that may cost more. Rejects with TemplateError. */
  check(
    schema: InputSchema,
    value: JsonValue,
    options: { part: CheckedPart; tenantId: string },
  ): MaybePromise<CheckedInput>;
}

/** What one value may cost at once: about half a millisecond. */
const UNITS_AT_ONCE = 5000;
/** What all of them may cost in one turn of the event loop, before the rest goes to threads. */
const UNITS_IN_A_TURN = 100_000;

export function createEvaluator(threads: ConfinedThreads): Evaluator {
  let leftInTurn = UNITS_IN_A_TURN;

  /** Undefined for work that costs more than is done at once. */
  function atOnce<Value>(work: (budget: Budget) => Value): { value: Value } | undefined {
    if (leftInTurn === UNITS_IN_A_TURN)
      setImmediate(() => {
        leftInTurn = UNITS_IN_A_TURN;
      });
    const given = Math.min(UNITS_AT_ONCE, leftInTurn);
    const budget = new Budget(given, false);
    try {
      return { value: work(budget) };
    } catch (error) {
      if (error instanceof OverBudget) return undefined;
      throw error;
    } finally {
      leftInTurn -= given - Math.max(0, budget.left);
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

/** The part of a scope that the expressions speak of: a run may hold megabytes beside it. */
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
