import { type ASTNode, Environment } from '@marcbachmann/cel-js';
import { type Budget, CHARS_PER_UNIT, OverBudget } from './budget.ts';
import { toCel, toJson } from './cel-values.ts';

/**
 * CEL environment that counts the cost of each operation against a budget. The CEL library has no hook for costs, so
 * this module replaces a method of the library.
 */

/** Run state for the functions `success()`, `failure()` and `cancelled()`. */
export type ScopeState = 'success' | 'failure' | 'cancelled' | 'skipped';

/**
 * Maximum length of one value, in characters. Without a limit, each repeated concatenation could double the length of a
 * text.
 */
export const MAX_VALUE_CHARS = 4 * 1024 * 1024;
/**
 * Maximum length of a text that an expression can build on the main thread. Longer texts are built in a worker thread.
 */
const MAX_CHARS_IN_PLACE = 64 * 1024;
/**
 * Maximum length of a computed key, in characters. V8 keeps an interned copy of each key while an object uses the key.
 */
const MAX_KEY_CHARS = 1024;

/** Keys that the CEL library silently drops from map literals. */
export const NO_KEYS: ReadonlySet<unknown> = new Set(['__proto__', 'constructor', 'prototype']);

export class TooLarge extends Error {}

/** A syntax tree node of the CEL library, with the fields that the library's `evaluate` methods use. */
interface Node {
  op: string;
  args: unknown;
  left: Node;
  right: Node;
  receiverWithArgs?: Node[];
  /** Applies the operator to evaluated operands. */
  handle(...args: unknown[]): unknown;
  evaluate: EvaluateNode;
  meta: { alternate?: Node; macro?: unknown; evaluate: EvaluateNode };
  setMeta(key: 'evaluate', value: EvaluateNode): void;
}
type EvaluateNode = (evaluator: Evaluator, node: Node, context: unknown) => unknown;

interface Evaluator {
  run(node: Node, context: unknown): unknown;
  tryEval(node: Node, context: unknown): unknown;
}

/** Budget and run state of the current evaluation. Module variables are safe, because evaluation is synchronous. */
let budget: Budget;
let currentState: ScopeState = 'success';

/** Creates a compiler for expressions over these variables. */
export function createCompiler(variables: readonly string[]): (text: string) => Program {
  const environment = createEnvironment(variables);
  return (text) => compileProgram(environment, text);
}

function createEnvironment(variables: readonly string[]): Environment {
  const env = new Environment({
    homogeneousAggregateLiterals: false,
    enableOptionalTypes: true,
    limits: { maxAstNodes: 2000, maxDepth: 64 },
  });
  for (const name of variables) env.registerVariable(name, 'dyn');
  // JSON has one number type, so these operators accept integers mixed with doubles. Otherwise, `input.count * 2` would
  // be a type error.
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
  // The CEL library exposes its evaluator only as `this` of registered functions.
  let evaluator: Evaluator | undefined;
  env.registerFunction('always(): bool', function (this: Evaluator) {
    evaluator ??= this;
    return true;
  });
  env.registerFunction('toJson(dyn): string', (value: unknown) => JSON.stringify(toJson(value)));
  env.registerFunction('fromJson(string): dyn', (text: string) => toCel(JSON.parse(text)));
  env.evaluate('always()');
  countOperations(evaluator!);
  return env;
}

function countOperations(evaluator: Evaluator): void {
  evaluator.run = function (node, context) {
    return counted(this, node, context);
  };
  // `||`, `&&`, `exists` and `all` ignore errors of their operands. Exceeded limits are rethrown, because an exceeded
  // limit must end the evaluation.
  evaluator.tryEval = function (node, context) {
    try {
      return this.run(node, context);
    } catch (error) {
      if (error instanceof OverBudget || error instanceof TooLarge) throw error;
      budget.spend(COST_OF_ERROR);
      return error;
    }
  };
}

const COST_OF_ERROR = 50;
const COST_OF_CALL = 5;
const INDEX = new Set(['[]', '[?]']);
const BINARY = new Set(['!=', '==', 'in', '+', '-', '*', '/', '%', '<', '<=', '>', '>=']);
/**
 * Functions of unpredictable cost. Regular expressions can backtrack exponentially, and parsing a duration takes
 * quadratic time.
 */
const UNKNOWN_COST = new Set(['matches', 'duration']);
const SEARCHES = new Set(['contains', 'indexOf', 'lastIndexOf', 'split', 'startsWith', 'endsWith']);

function counted(evaluator: Evaluator, written: Node, context: unknown, own?: EvaluateNode): unknown {
  budget.spend(1);
  const node = written.meta.alternate ?? written;
  const evaluate = own ?? node.evaluate;
  if (node.meta.macro !== undefined) return evaluate.call(node, evaluator, node, context);
  if (BINARY.has(node.op)) return binary(evaluator, node, context);
  if (INDEX.has(node.op)) return index(evaluator, node, context);
  if (node.op === 'map') return mapLiteral(evaluator, node, context);
  if (node.op === 'call' || node.op === 'rcall') return call(evaluator, node, context);
  if (node.op === 'comprehension') return comprehension(evaluator, node, context);
  return evaluate.call(node, evaluator, node, context);
}

function binary(evaluator: Evaluator, node: Node, context: unknown): unknown {
  const left = evaluator.run(node.left, context);
  const right = evaluator.run(node.right, context);
  spendOnBinary(node.op, left, right);
  return limited(node.handle(left, right, node, evaluator));
}

function index(evaluator: Evaluator, node: Node, context: unknown): unknown {
  const value = evaluator.run(node.left, context);
  const key = evaluator.run(node.right, context);
  spendOnKey(key);
  return node.handle(value, key, node, evaluator);
}

/**
 * Evaluates a map literal. Limits the key length, because the CEL library does not. V8 builds the whole text in memory
 * when a concatenated text is used as a key.
 */
function mapLiteral(evaluator: Evaluator, node: Node, context: unknown): unknown {
  const entries = (node.args as Array<[Node, Node]>).map(([key, value]) => {
    const name = evaluator.run(key, context);
    spendOnKey(name);
    if (typeof name === 'string' && name.length > MAX_KEY_CHARS)
      throw new TooLarge(`it makes a key of ${name.length} characters; a key may have ${MAX_KEY_CHARS}`);
    return [String(name), evaluator.run(value, context)] as const;
  });
  return Object.fromEntries(entries.filter(([name]) => !NO_KEYS.has(name)));
}

/**
 * Counts the text of a key against the budget. A list that serves as a key is also counted, because the list is
 * converted to text.
 */
function spendOnKey(key: unknown): void {
  if (isScalar(key)) budget.spend(textOf(key));
  else budget.spendOn(key);
}

function spendOnBinary(op: string, left: unknown, right: unknown): void {
  if (op === '+') budget.spend(itemsOf(left) + itemsOf(right));
  else if (op === 'in') {
    if (!isScalar(left)) {
      budget.spendOn(left);
      budget.spendOn(right);
    } else if (Array.isArray(right)) {
      budget.spend(right.length);
      for (const item of right) budget.spend(Math.min(textOf(left), textOf(item)));
    } else spendOnKey(left);
  } else if (op === '==' || op === '!=') {
    if (isScalar(left) || isScalar(right)) budget.spend(Math.min(textOf(left), textOf(right)));
    else {
      budget.spendOn(left);
      budget.spendOn(right);
    }
  } else budget.spend(textOf(left) + textOf(right));
}

const isScalar = (value: unknown): boolean => typeof value !== 'object' || value === null;
const textOf = (value: unknown): number => (typeof value === 'string' ? value.length / CHARS_PER_UNIT : 0);

/**
 * Returns the number of items that `+` copies. Strings count as zero, because V8 does not copy concatenated strings.
 */
function itemsOf(value: unknown): number {
  if (Array.isArray(value)) return value.length;
  return value instanceof Uint8Array ? value.length / CHARS_PER_UNIT : 0;
}

function call(evaluator: Evaluator, node: Node, context: unknown): unknown {
  const isMethod = node.op === 'rcall';
  const written = isMethod ? node.receiverWithArgs! : (node.args as [string, Node[]])[1];
  const values = written.map((argument) => evaluator.run(argument, context));
  spendOnCall((node.args as [string])[0], values);
  const found = isMethod ? node.handle(values, evaluator, node) : node.handle(values, node, evaluator);
  if (Array.isArray(found)) budget.spend(found.length);
  return limited(found);
}

function spendOnCall(name: string, values: unknown[]): void {
  budget.spend(COST_OF_CALL);
  if (UNKNOWN_COST.has(name)) budget.requireConfinement();
  const [first, second] = values;
  if (name === 'size' && Array.isArray(first)) return;
  for (const value of values) budget.spendOn(value);
  if (name === 'join' && Array.isArray(first)) spendOnJoin(first, second);
  if (name === 'duration') budget.spend(textOf(first) ** 2);
  if (SEARCHES.has(name) && typeof first === 'string' && typeof second === 'string')
    budget.spend((first.length * second.length) / (CHARS_PER_UNIT * CHARS_PER_UNIT));
}

/** Checks the length of the result before `join` runs, because `join` builds the whole text at once. */
function spendOnJoin(items: unknown[], separator: unknown): void {
  let chars = typeof separator === 'string' ? separator.length * items.length : 0;
  for (const item of items) if (typeof item === 'string') chars += item.length;
  if (chars > MAX_VALUE_CHARS) throw tooLarge();
  budget.spend(chars / CHARS_PER_UNIT);
}

function comprehension(evaluator: Evaluator, node: Node, context: unknown): unknown {
  const parts = node.args as { iterable: Node };
  const items = evaluator.run(parts.iterable, context);
  // The keys of a map are charged, because a comprehension over a map first lists all keys.
  if (!isScalar(items) && !Array.isArray(items)) for (const _ in items as object) budget.spend(1);
  return node.handle(items, parts, evaluator, context);
}

function limited(value: unknown): unknown {
  if (typeof value !== 'string' || value.length <= MAX_CHARS_IN_PLACE) return value;
  if (value.length > MAX_VALUE_CHARS) throw tooLarge();
  budget.requireConfinement();
  return value;
}

export function tooLarge(): TooLarge {
  return new TooLarge(`it makes more than ${MAX_VALUE_CHARS} characters`);
}

export interface Program {
  readonly ast: ASTNode;
  run(values: Record<string, unknown>, state: ScopeState, limit: Budget): unknown;
}

/** Parses and type-checks CEL text. Throws the errors of the CEL library. */
function compileProgram(environment: Environment, text: string): Program {
  const program = environment.parse(text);
  const { valid, error } = program.check();
  if (!valid) throw error;
  const ast = program.ast as unknown as Node;
  // The CEL library runs the outermost node directly, so the `evaluate` method of that node is wrapped.
  const root = ast.meta.alternate ?? ast;
  if (root.meta.macro === undefined) {
    const own = root.meta.evaluate;
    root.setMeta('evaluate', (evaluator, _node, context) => counted(evaluator, root, context, own));
  }
  return {
    ast: program.ast,
    run(values, state, limit) {
      currentState = state;
      budget = limit;
      return program(values);
    },
  };
}
