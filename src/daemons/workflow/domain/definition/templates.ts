import type { JsonValue } from '../../../../store/ports/index.ts';
import {
  compileExpression,
  type Expression,
  type ExpressionError,
  requireSize,
  type Scope,
} from './expressions.ts';

/** Where something stands in a definition: `jobs`, `build`, `steps`, 0, `if`. */
export type Path = ReadonlyArray<string | number>;

/** What is wrong with a definition, and where. `offset` counts from the first character of the text at `path`. */
export interface DefinitionIssue {
  path: Path;
  message: string;
  offset?: number;
  /** It names a job, step or output that does not exist, which may follow from another fault. */
  isReference?: true;
}

/** JSON in which texts may hold `${{ expression }}`. */
export interface Template {
  /** Throws TemplateError. */
  evaluate(scope: Scope): JsonValue;
  readonly expressions: ReadonlyArray<{ expression: Expression; path: Path; offset: number }>;
}

/** An expression that could not be evaluated. */
class TemplateError extends Error {
  readonly path: Path;
  constructor(message: string, path: Path) {
    super(message);
    this.name = 'TemplateError';
    this.path = path;
  }
}

/** CEL as it stands in a template. */
export const inBraces = (cel: string): string => `\${{ ${cel} }}`;

type Part = string | { expression: Expression; text: string; offset: number };
type Node = (scope: Scope) => JsonValue;

/** Compiles; faults are added to `issues`, and then the template must not be used. */
export function compileTemplate(value: JsonValue, path: Path, issues: DefinitionIssue[]): Template {
  const expressions: Array<{ expression: Expression; path: Path; offset: number }> = [];

  function compile(item: JsonValue, at: Path): Node | undefined {
    if (typeof item === 'string') return compileText(item, at);
    if (typeof item !== 'object' || item === null) return undefined;
    if (Array.isArray(item)) {
      const nodes = item.map((child, index) => compile(child, [...at, index]));
      if (nodes.every((node) => node === undefined)) return undefined;
      return (scope) =>
        item.map((child, index) => {
          const node = nodes[index];
          return node ? node(scope) : child;
        });
    }
    const nodes = Object.entries(item).map(
      ([key, child]) => [key, child, compile(child, [...at, key])] as const,
    );
    if (nodes.every(([, , node]) => node === undefined)) return undefined;
    return (scope) =>
      Object.fromEntries(nodes.map(([key, child, node]) => [key, node ? node(scope) : child]));
  }

  function compileText(text: string, at: Path): Node | undefined {
    const parts = splitText(text, at, issues);
    const active = parts.filter((part) => typeof part !== 'string');
    if (active.length === 0) return undefined;
    for (const { expression, offset } of active) expressions.push({ expression, path: at, offset });
    const [only] = parts;
    if (parts.length === 1 && typeof only === 'object') return (scope) => run(only, scope, at);
    return (scope) =>
      parts.reduce<string>(
        (text, part) => sized(text + (typeof part === 'string' ? part : asText(run(part, scope, at))), at),
        '',
      );
  }

  const node = compile(value, path);
  return { expressions, evaluate: node ? (scope) => sized(node(scope), path) : () => value };
}

/** Many small expressions make as much as one large one. */
function sized<Value extends JsonValue>(value: Value, path: Path): Value {
  try {
    requireSize(value);
    return value;
  } catch (error) {
    throw new TemplateError(`${formatPath(path)}: ${(error as Error).message}`, path);
  }
}

function run({ expression, text }: Exclude<Part, string>, scope: Scope, path: Path): JsonValue {
  try {
    return expression.evaluate(scope);
  } catch (error) {
    throw new TemplateError(`${formatPath(path)}: \`${text.trim()}\`: ${(error as Error).message}`, path);
  }
}

function asText(value: JsonValue): string {
  if (value === null) return '';
  return typeof value === 'object' ? JSON.stringify(value) : String(value);
}

/** Text and `${{ }}` in turn. A `}}` within quotes ends nothing. */
function splitText(text: string, path: Path, issues: DefinitionIssue[]): Part[] {
  const parts: Part[] = [];
  let rest = 0;
  for (;;) {
    const open = text.indexOf('${{', rest);
    if (open === -1) break;
    if (open > rest) parts.push(text.slice(rest, open));
    const close = closingAt(text, open + 3);
    if (close === -1) {
      issues.push({ path, message: 'the opening braces have no closing "}}"', offset: open });
      return [];
    }
    const source = text.slice(open + 3, close);
    try {
      parts.push({ expression: compileExpression(source), text: source, offset: open + 3 });
    } catch (error) {
      const { message, offset } = error as ExpressionError;
      issues.push({ path, message: `\`${source.trim()}\`: ${message}`, offset: open + 3 + offset });
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
      // A map literal may end right before the closing braces: `${{ {"a": {"b": 1}}}}`.
      let end = i;
      while (text[end + 2] === '}') end++;
      return end;
    }
  }
  return -1;
}

/** `jobs.build.steps[0].if`. */
export function formatPath(path: Path): string {
  return path.reduce<string>(
    (text, part) => (typeof part === 'number' ? `${text}[${part}]` : text === '' ? part : `${text}.${part}`),
    '',
  );
}

/** A condition: CEL with or without `${{ }}` around it. Without `success()` and its like, `success()` is assumed. */
export interface Condition {
  /** Throws TemplateError. */
  holds(scope: Scope): boolean;
  readonly expressions: Template['expressions'];
}

export const WHEN_SUCCESSFUL: Condition = { holds: ({ state }) => state === 'success', expressions: [] };

export function compileCondition(
  text: string | boolean | undefined,
  path: Path,
  issues: DefinitionIssue[],
): Condition {
  if (text === undefined) return WHEN_SUCCESSFUL;
  if (typeof text === 'boolean')
    return { holds: ({ state }) => text && state === 'success', expressions: [] };
  const bare = /^\s*\$\{\{([\s\S]*)\}\}\s*$/.exec(text)?.[1];
  const source = bare ?? text;
  const offset = bare === undefined ? 0 : text.indexOf('${{') + 3;
  let expression: Expression;
  try {
    expression = compileExpression(source);
  } catch (error) {
    const { message, offset: place } = error as ExpressionError;
    issues.push({ path, message: `\`${source.trim()}\`: ${message}`, offset: offset + place });
    return WHEN_SUCCESSFUL;
  }
  return {
    expressions: [{ expression, path, offset }],
    holds(scope) {
      if (!expression.asksForState && scope.state !== 'success') return false;
      const value = run({ expression, text: source, offset }, scope, path);
      if (typeof value === 'boolean') return value;
      throw new TemplateError(
        `${formatPath(path)}: \`${source.trim()}\` must be true or false, not ${JSON.stringify(value)}`,
        path,
      );
    },
  };
}
