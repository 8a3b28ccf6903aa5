import type { ASTNode } from '@marcbachmann/cel-js';
import { isLongerThan } from '../../../../kit/data/json.ts';
import { type Budget, OverBudget } from '../../../../kit/expressions/budget.ts';
import {
  createCompiler,
  MAX_VALUE_CHARS,
  NO_KEYS,
  type Program,
  type ScopeState,
  TooLarge,
  tooLarge,
} from '../../../../kit/expressions/cel-environment.ts';
import { toCel, toJson } from '../../../../kit/expressions/cel-values.ts';
import type { JsonValue } from '../../../../store/ports/index.ts';

/**
 * Number of outer levels of each variable that are rebuilt for each evaluation. With 2 levels, `steps` and `steps.<id>`
 * are rebuilt.
 */
const VARIABLES = { input: 0, run: 0, matrix: 0, steps: 2, needs: 3, jobs: 3, delivery: 1 } as const;
export type Variable = keyof typeof VARIABLES;

const compileProgram = createCompiler(Object.keys(VARIABLES));

/** Variables available to an expression. */
export interface Scope {
  input: JsonValue;
  run: Record<string, JsonValue>;
  matrix: Record<string, JsonValue>;
  /** Maps the id of each step to `{status, output, error}`. */
  steps: Record<string, JsonValue>;
  /** Maps the id of each job that this job depends on to `{status, outputs}`. */
  needs: Record<string, JsonValue>;
  jobs: Record<string, JsonValue>;
  /** The webhook delivery. Available only to expressions in `on.webhook`. */
  delivery?: JsonValue;
  /** Run state for the functions `success()`, `failure()` and `cancelled()`. */
  state: ScopeState;
}

/** A fault in the text or the result of an expression. `offset` is the number of characters before the fault. */
export class ExpressionError extends Error {
  readonly offset: number;
  /** Whether the expression exceeded a limit. The same expression can succeed with other data. */
  readonly isLimit: boolean;
  constructor(message: string, offset: number, isLimit = false) {
    super(message);
    this.name = 'ExpressionError';
    this.offset = offset;
    this.isLimit = isLimit;
  }
}

/** Fields of a variable that an expression reads. `all` if the expression computes a field name at run time. */
export type UsedNames = 'all' | ReadonlySet<string>;

export interface Expression {
  /** Returns the value of the expression. Throws ExpressionError or OverBudget. */
  evaluate(scope: Scope, budget: Budget): JsonValue;
  /**
   * Returns the fields of a variable that the expression reads. For example, `steps.build.output` reads the field
   * `build` of `steps`.
   */
  namesOf(variable: string): Array<{ name: string; offset: number }>;
  readonly uses: ReadonlyMap<Variable, UsedNames>;
  /**
   * Whether the expression calls a state function such as `failure()`. Such a call disables the implied `success()`.
   */
  readonly asksForState: boolean;
}

const STATE_FUNCTIONS = new Set(['success', 'failure', 'cancelled', 'always']);

/** Parses and type-checks CEL text. Throws ExpressionError. */
export function compileExpression(text: string): Expression {
  let program: Program;
  try {
    program = compileProgram(text);
  } catch (error) {
    throw expressionError(error);
  }
  const calls = new Set<string>();
  const names = new Map<string, Array<{ name: string; offset: number }>>();
  const mentions = new Map<Variable, number>();
  visit(program.ast, (node) => {
    if (node.op === 'id' && Object.hasOwn(VARIABLES, node.args)) {
      const variable = node.args as Variable;
      mentions.set(variable, (mentions.get(variable) ?? 0) + 1);
    }
    if (node.op === 'map') for (const [key] of node.args) requireKey(key);
    if (node.op === 'call' || node.op === 'rcall') calls.add(node.args[0]);
    if (node.op === '.' && node.args[0].op === 'id') {
      const [{ args: variable }, name] = node.args;
      names.set(variable, [...(names.get(variable) ?? []), { name, offset: node.start }]);
    }
  });
  const namesOf = (variable: string) => names.get(variable) ?? [];
  const uses = new Map<Variable, UsedNames>();
  for (const [variable, count] of mentions) {
    const taken = namesOf(variable);
    uses.set(variable, taken.length === count ? new Set(taken.map(({ name }) => name)) : 'all');
  }
  const path = isPath(program.ast);

  return {
    asksForState: [...calls].some((name) => STATE_FUNCTIONS.has(name)),
    namesOf,
    uses,
    evaluate(scope, budget) {
      try {
        const values: Record<string, unknown> = {};
        for (const name of uses.keys()) values[name] = toCel(scope[name], VARIABLES[name], budget);
        const found = program.run(values, scope.state, budget);
        // A path such as `steps.a.output` returns an existing value, so the size of the value is not counted against
        // the budget.
        if (path && [...uses.keys()].every((name) => values[name] === scope[name]))
          return (found ?? null) as JsonValue;
        budget.spendOn(found);
        const value = toJson(found);
        requireSize(value);
        return value;
      } catch (error) {
        throw error instanceof OverBudget ? error : expressionError(error);
      }
    },
  };
}

/** Returns whether the expression is a path such as `steps.build.output.x` or `input["x"]`. */
function isPath({ op, args }: ASTNode): boolean {
  if (op === 'id') return true;
  if (op === '.') return isPath(args[0]);
  return op === '[]' && isPath(args[0]) && args[1].op === 'value';
}

/** Throws ExpressionError for a value above the size limit. The limit exists because all runs share the memory. */
export function requireSize(value: JsonValue): void {
  if (isLongerThan(value, MAX_VALUE_CHARS)) throw expressionError(tooLarge());
}

/** Throws ExpressionError for a map key that the CEL library would silently drop. */
function requireKey({ op, args, start }: ASTNode): void {
  if (op === 'value' && NO_KEYS.has(args))
    throw new ExpressionError(`a map that an expression writes cannot have the key "${args}"`, start);
}

function visit(node: unknown, see: (node: ASTNode) => void): void {
  if (Array.isArray(node)) for (const item of node) visit(item, see);
  else if (typeof node === 'object' && node !== null && 'op' in node) {
    see(node as ASTNode);
    visit((node as ASTNode).args, see);
  }
}

function expressionError(thrown: unknown): ExpressionError {
  if (thrown instanceof ExpressionError) return thrown;
  if (thrown instanceof TooLarge) return new ExpressionError(thrown.message, 0, true);
  // JavaScript throws RangeError for values that are nested too deeply, and for texts that are too long.
  if (thrown instanceof RangeError) return new ExpressionError(thrown.message, 0, true);
  const { summary, message, range } = thrown as {
    summary?: string;
    message: string;
    range?: { start: number };
  };
  return new ExpressionError(summary ?? message, range?.start ?? 0);
}
