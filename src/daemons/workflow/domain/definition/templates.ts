import { EXPRESSION_OPENING } from '../../../../contracts/index.ts';
import { type Budget, OverBudget } from '../../../../kit/expressions/budget.ts';
import type { JsonValue } from '../../../../store/ports/index.ts';
import {
  compileExpression,
  type Expression,
  ExpressionError,
  requireSize,
  type Scope,
} from './expressions.ts';

/** Path of a value in a definition, for example `['jobs', 'build', 'steps', 0, 'if']`. */
export type Path = ReadonlyArray<string | number>;

/** A fault of a definition. `offset` is the number of characters before the fault in the text at `path`. */
export interface DefinitionIssue {
  path: Path;
  message: string;
  offset?: number;
  /**
   * Whether the fault is a reference to an unknown job, step or output. Another fault might be the cause of such a
   * fault.
   */
  isReference?: true;
}

/** Maximum number of faults reported per definition. A small text can have a hundred thousand faults. */
export const MAX_ISSUES = 100;

export function addIssue(issues: DefinitionIssue[], issue: DefinitionIssue): void {
  if (issues.length < MAX_ISSUES) issues.push(issue);
}

/** A compiled value that can contain expressions. */
export interface Evaluable<Value> {
  /** Returns the value with all expressions evaluated. Throws TemplateError or OverBudget. */
  evaluate(scope: Scope, budget: Budget): Value;
  readonly expressions: ReadonlyArray<{ expression: Expression; path: Path; offset: number }>;
  /** Value as written in the definition, so that a worker thread can compile the value again. */
  readonly written: Written;
}

export type Written = { kind: 'template' | 'condition'; value: JsonValue; path: Path };

/** JSON value whose strings can contain `${{ expression }}`. */
export type Template = Evaluable<JsonValue>;

export class TemplateError extends Error {
  readonly path: Path;
  /** Whether a limit of time, memory or size was exceeded. */
  readonly isLimit: boolean;
  constructor(message: string, path: Path, isLimit = false) {
    super(message);
    this.name = 'TemplateError';
    this.path = path;
    this.isLimit = isLimit;
  }
}

/** Opening characters of each expression in a template. */
export const OPENING = EXPRESSION_OPENING;

/** Wraps a CEL expression in `${{ }}` for use in a template. */
export const inBraces = (cel: string): string => `\${{ ${cel} }}`;

type Part = string | { expression: Expression; text: string; offset: number };
type Node = (scope: Scope, budget: Budget) => JsonValue;

/** Compiles a template. If faults are added to `issues`, the result must not be used. */
export function compileTemplate(value: JsonValue, path: Path, issues: DefinitionIssue[]): Template {
  const expressions: Array<{ expression: Expression; path: Path; offset: number }> = [];
  // All nested values share one path array, which is copied only for expressions. A copy for each value of a large list
  // would take gigabytes.
  const here = [...path];

  function compileAt(key: string | number, child: JsonValue): Node | undefined {
    here.push(key);
    const node = compile(child);
    here.pop();
    return node;
  }

  function compile(item: JsonValue): Node | undefined {
    if (typeof item === 'string') return item.includes(OPENING) ? compileText(item, [...here]) : undefined;
    if (typeof item !== 'object' || item === null) return undefined;
    if (Array.isArray(item)) {
      const nodes = item.map((child, index) => compileAt(index, child));
      if (nodes.every((node) => node === undefined)) return undefined;
      return (scope, budget) =>
        item.map((child, index) => {
          const node = nodes[index];
          return node ? node(scope, budget) : child;
        });
    }
    const nodes = Object.entries(item).map(([key, child]) => [key, child, compileAt(key, child)] as const);
    if (nodes.every(([, , node]) => node === undefined)) return undefined;
    return (scope, budget) =>
      Object.fromEntries(nodes.map(([key, child, node]) => [key, node ? node(scope, budget) : child]));
  }

  function compileText(text: string, at: Path): Node | undefined {
    const parts = splitText(text, at, issues);
    const active = parts.filter((part) => typeof part !== 'string');
    if (active.length === 0) return undefined;
    for (const { expression, offset } of active) expressions.push({ expression, path: at, offset });
    const [only] = parts;
    if (parts.length === 1 && typeof only === 'object')
      return (scope, budget) => run(only, scope, budget, at);
    return (scope, budget) =>
      parts.reduce<string>(
        (text, part) =>
          sized(text + (typeof part === 'string' ? part : asText(run(part, scope, budget, at), budget)), at),
        '',
      );
  }

  const node = compile(value);
  return {
    expressions,
    written: { kind: 'template', value, path },
    evaluate: node ? (scope, budget) => sized(node(scope, budget), path) : () => value,
  };
}

/**
 * Returns the value. Throws TemplateError if the whole value exceeds the size limit. Many small expressions can add up
 * to a large value.
 */
function sized<Value extends JsonValue>(value: Value, path: Path): Value {
  try {
    requireSize(value);
    return value;
  } catch (error) {
    throw new TemplateError(`${formatPath(path)}: ${(error as Error).message}`, path, true);
  }
}

function run(
  { expression, text }: Exclude<Part, string>,
  scope: Scope,
  budget: Budget,
  path: Path,
): JsonValue {
  try {
    return expression.evaluate(scope, budget);
  } catch (error) {
    if (error instanceof OverBudget) throw error;
    const { message } = error as Error;
    const isLimit = error instanceof ExpressionError && error.isLimit;
    throw new TemplateError(`${formatPath(path)}: \`${excerpt(text)}\`: ${message}`, path, isLimit);
  }
}

const MAX_EXCERPT_CHARS = 200;

export function excerpt(text: string): string {
  const trimmed = text.trim();
  return trimmed.length <= MAX_EXCERPT_CHARS ? trimmed : `${trimmed.slice(0, MAX_EXCERPT_CHARS)}…`;
}

function asText(value: JsonValue, budget: Budget): string {
  if (value === null) return '';
  if (typeof value !== 'object') return String(value);
  budget.spendOn(value);
  return JSON.stringify(value);
}

/** Matches a mention of `secrets`, which is no variable of expressions. */
const SECRETS = /(?<![\w.])secrets\b/;

function faultOf(source: string, message: string): string {
  const hint = SECRETS.test(source) ? '; a secret must be the whole text of a value in `with` of a step' : '';
  return `\`${excerpt(source)}\`: ${message}${hint}`;
}

/** Splits text into literals and `${{ }}` expressions. `}}` within quotes does not end an expression. */
function splitText(text: string, path: Path, issues: DefinitionIssue[]): Part[] {
  const parts: Part[] = [];
  let rest = 0;
  for (;;) {
    const open = text.indexOf(OPENING, rest);
    if (open === -1) break;
    if (open > rest) parts.push(text.slice(rest, open));
    const close = closingAt(text, open + 3);
    if (close === -1) {
      addIssue(issues, { path, message: 'the opening braces have no closing "}}"', offset: open });
      return [];
    }
    const source = text.slice(open + 3, close);
    try {
      parts.push({ expression: compileExpression(source), text: source, offset: open + 3 });
    } catch (error) {
      const { message, offset } = error as ExpressionError;
      addIssue(issues, { path, message: faultOf(source, message), offset: open + 3 + offset });
    }
    rest = close + 2;
  }
  if (rest < text.length) parts.push(text.slice(rest));
  return parts;
}

function closingAt(text: string, start: number): number {
  let quote = '';
  for (let i = start; i < text.length; i++) {
    const char = text[i]!;
    if (quote !== '') {
      if (char === '\\') i++;
      else if (char === quote) quote = '';
    } else if (char === '"' || char === "'") quote = char;
    else if (char === '}' && text[i + 1] === '}') {
      // A map literal can end directly before the closing braces, as in `${{ {"a": {"b": 1}}}}`.
      let end = i;
      while (text[end + 2] === '}') end++;
      return end;
    }
  }
  return -1;
}

/** Formats a path as `jobs.build.steps[0].if`. */
export function formatPath(path: Path): string {
  return path.reduce<string>(
    (text, part) => (typeof part === 'number' ? `${text}[${part}]` : text === '' ? part : `${text}.${part}`),
    '',
  );
}

/**
 * A CEL condition with or without `${{ }}`. `success()` is implied unless the condition calls a state function such as
 * `always()`.
 */
export type Condition = Evaluable<boolean>;

export const WHEN_SUCCESSFUL: Condition = fixedCondition(true, []);

/** Condition of the steps that a workflow written in code requests. The condition is always true. */
export const ALWAYS: Condition = { ...WHEN_SUCCESSFUL, evaluate: () => true };

function fixedCondition(value: boolean, path: Path): Condition {
  return {
    evaluate: ({ state }) => value && state === 'success',
    expressions: [],
    written: { kind: 'condition', value, path },
  };
}

export function compileCondition(
  text: string | boolean | undefined,
  path: Path,
  issues: DefinitionIssue[],
): Condition {
  if (text === undefined) return WHEN_SUCCESSFUL;
  if (typeof text === 'boolean') return fixedCondition(text, path);
  const bare = /^\s*\$\{\{([\s\S]*)\}\}\s*$/.exec(text)?.[1];
  const source = bare ?? text;
  const offset = bare === undefined ? 0 : text.indexOf('${{') + 3;
  let expression: Expression;
  try {
    expression = compileExpression(source);
  } catch (error) {
    const { message, offset: place } = error as ExpressionError;
    addIssue(issues, { path, message: faultOf(source, message), offset: offset + place });
    return WHEN_SUCCESSFUL;
  }
  return {
    expressions: [{ expression, path, offset }],
    written: { kind: 'condition', value: text, path },
    evaluate(scope, budget) {
      if (!expression.asksForState && scope.state !== 'success') return false;
      const value = run({ expression, text: source, offset }, scope, budget, path);
      if (typeof value === 'boolean') return value;
      throw new TemplateError(
        `${formatPath(path)}: \`${excerpt(source)}\` must be true or false, not ${excerpt(JSON.stringify(value))}`,
        path,
      );
    },
  };
}
