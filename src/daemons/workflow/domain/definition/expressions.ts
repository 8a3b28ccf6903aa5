import { Script } from 'node:vm';
import { type ASTNode, Environment } from '@marcbachmann/cel-js';
import { codeOf } from '../../../../kit/errors.ts';
import type { JsonValue } from '../../../../store/ports/index.ts';
import { toCel, toJson } from './cel-values.ts';

/** What an expression may speak of. */
export interface Scope {
  input: JsonValue;
  run: Record<string, JsonValue>;
  matrix: Record<string, JsonValue>;
  /** By step id: `{status, output, error}`. */
  steps: Record<string, JsonValue>;
  /** By job id: `{status, outputs}`. */
  needs: Record<string, JsonValue>;
  jobs: Record<string, JsonValue>;
  /** In `on.webhook` alone. */
  delivery?: JsonValue;
  /** What `success()`, `failure()` and `cancelled()` answer. */
  state: 'success' | 'failure' | 'cancelled' | 'skipped';
}

/** A fault in the text of an expression; `offset` counts from its first character. */
export class ExpressionError extends Error {
  readonly offset: number;
  constructor(message: string, offset: number) {
    super(message);
    this.name = 'ExpressionError';
    this.offset = offset;
  }
}

export interface Expression {
  /** Throws ExpressionError. */
  evaluate(scope: Scope): JsonValue;
  /** Names that the text takes of a variable: `steps.build.output` takes `build` of `steps`. */
  namesOf(variable: string): Array<{ name: string; offset: number }>;
  /** Whether it asks for the state itself, so that no `success()` is assumed. */
  readonly asksForState: boolean;
}

/** With how many levels of each are made anew for an evaluation: `steps.<id>.output`, `needs.<id>.outputs.<name>`. */
const VARIABLES = { input: 0, run: 0, matrix: 0, steps: 2, needs: 3, jobs: 3, delivery: 1 } as const;
type Variable = keyof typeof VARIABLES;
/** The library leaves these out of a map that an expression writes, without a word. */
const NO_KEYS: ReadonlySet<unknown> = new Set(['__proto__', 'constructor', 'prototype']);
const STATE_FUNCTIONS = new Set(['success', 'failure', 'cancelled', 'always']);
/** What may take long: loops over a caller's data, and patterns that backtrack. */
const COSTLY = new Set(['matches', 'all', 'exists', 'exists_one', 'map', 'filter']);
const TIME_LIMIT_MS = 100;

/** Evaluation is synchronous, so the functions that ask for the state find it here. */
let currentState: Scope['state'] = 'success';

const environment = createEnvironment();

function createEnvironment(): Environment {
  const env = new Environment({
    homogeneousAggregateLiterals: false,
    enableOptionalTypes: true,
    limits: { maxAstNodes: 2000, maxDepth: 64 },
  });
  for (const name of Object.keys(VARIABLES)) env.registerVariable(name, 'dyn');
  // JSON knows one kind of number; without these, `input.count * 2` would be a type error.
  const mixed: Record<string, (a: number, b: number) => number> = {
    '+': (a, b) => a + b,
    '-': (a, b) => a - b,
    '*': (a, b) => a * b,
    '/': (a, b) => a / b,
    '%': (a, b) => a % b,
  };
  for (const [operator, apply] of Object.entries(mixed)) {
    const numeric = (a: unknown, b: unknown): number => apply(Number(a), Number(b));
    env.registerOperator(`int ${operator} double`, numeric);
    env.registerOperator(`double ${operator} int`, numeric);
  }
  env.registerOperator('double % double', (a: number, b: number) => a % b);
  env.registerFunction('success(): bool', () => currentState === 'success');
  env.registerFunction('failure(): bool', () => currentState === 'failure');
  env.registerFunction('cancelled(): bool', () => currentState === 'cancelled');
  env.registerFunction('always(): bool', () => true);
  env.registerFunction('toJson(dyn): string', (value: unknown) => JSON.stringify(toJson(value)));
  env.registerFunction('fromJson(string): dyn', (text: string) => toCel(JSON.parse(text)));
  return env;
}

/** Parses and checks CEL text. Throws ExpressionError. */
export function compileExpression(text: string): Expression {
  let program: ReturnType<Environment['parse']>;
  try {
    program = environment.parse(text);
    const { valid, error } = program.check();
    if (!valid) throw error;
  } catch (error) {
    throw expressionError(error);
  }
  const calls = new Set<string>();
  const names = new Map<string, Array<{ name: string; offset: number }>>();
  const variables = new Set<Variable>();
  visit(program.ast, (node) => {
    if (node.op === 'id' && Object.hasOwn(VARIABLES, node.args)) variables.add(node.args as Variable);
    if (node.op === 'map') for (const [key] of node.args) requireKey(key);
    if (node.op === 'call' || node.op === 'rcall') calls.add(node.args[0]);
    if (node.op === '.' && node.args[0].op === 'id') {
      const [{ args: variable }, name] = node.args;
      names.set(variable, [...(names.get(variable) ?? []), { name, offset: node.start }]);
    }
  });
  const callsOneOf = (set: ReadonlySet<string>): boolean => [...calls].some((name) => set.has(name));
  const costly = callsOneOf(COSTLY);

  return {
    asksForState: callsOneOf(STATE_FUNCTIONS),
    namesOf: (variable) => names.get(variable) ?? [],
    evaluate(scope) {
      currentState = scope.state;
      try {
        const values: Record<string, unknown> = {};
        for (const name of variables) values[name] = toCel(scope[name], VARIABLES[name]);
        const found = toJson(costly ? withinTime(() => program(values)) : program(values));
        requireSize(found);
        return found;
      } catch (error) {
        throw expressionError(error);
      }
    },
  };
}

/** What one expression may make: joining texts doubles them with each sign, and the memory is that of all runs. */
const MOST_CHARS = 4 * 1024 * 1024;

/** Throws for more text than that. A text that was joined and not looked at yet costs nothing: its length is known. */
export function requireSize(value: JsonValue): void {
  let left = MOST_CHARS;
  const count = (item: JsonValue): void => {
    if (typeof item === 'string') left -= item.length;
    else if (Array.isArray(item)) for (const one of item) count(one);
    else if (typeof item === 'object' && item !== null) for (const one of Object.values(item)) count(one);
    if (left < 0) throw new ExpressionError(`it makes more than ${MOST_CHARS} characters`, 0);
  };
  count(value);
}

/** Throws ExpressionError for a key that would not be there. */
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
  const { summary, message, range } = thrown as {
    summary?: string;
    message: string;
    range?: { start: number };
  };
  return new ExpressionError(summary ?? message, range?.start ?? 0);
}

const CALL_KEY = Symbol.for('svc.workflow.expression');
let script: Script | undefined;

/**
 * Runs synchronous work that is ended after a tenth of a second: a definition may come from any caller, and one loop of
 * it must not stop the runs of all. Costs 0.2 ms, so only what may take long goes through here.
 */
export function withinTime<T>(work: () => T, limitMs = TIME_LIMIT_MS): T {
  script ??= new Script(`globalThis[Symbol.for('svc.workflow.expression')]()`);
  const slot = globalThis as unknown as Record<symbol, unknown>;
  slot[CALL_KEY] = work;
  try {
    return script.runInThisContext({ timeout: limitMs }) as T;
  } catch (error) {
    if (codeOf(error) !== 'ERR_SCRIPT_EXECUTION_TIMEOUT') throw error;
    throw new ExpressionError(`it took longer than ${limitMs} ms`, 0);
  } finally {
    delete slot[CALL_KEY];
  }
}
