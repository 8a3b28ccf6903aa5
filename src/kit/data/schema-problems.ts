import type { z } from 'zod';
import { nearest } from './nearest.ts';

/** A validation error whose message is written by the platform instead of zod. */
export interface SchemaProblem {
  path: PropertyKey[];
  message: string;
}

/** Matches zod's default messages, which the platform replaces with its own messages. */
const ZOD_DEFAULT_MESSAGE = /^(?:Invalid|Too|Unrecognized|Input not)\b/;

const FORMATS: Readonly<Record<string, string>> = {
  uuid: 'must be an id such as 01b8dac5-b5c2-7c27-a83c-4825204b1967',
  url: 'must be an address such as https://svc.example.com',
  datetime: 'must be a time such as 2030-01-31T12:00:00Z',
  email: 'must be an email address',
};

/**
 * Converts zod issues to problems. Each unknown key becomes a separate problem. With `keysAt`, messages suggest a
 * similar valid key.
 */
export function problemsOf(
  issues: readonly z.core.$ZodIssue[],
  value: unknown,
  keysAt?: (path: readonly PropertyKey[]) => string[],
): SchemaProblem[] {
  return issues.flatMap((issue): SchemaProblem[] => {
    if (issue.code !== 'unrecognized_keys')
      return [{ path: [...issue.path], message: problemText(issue, valueAt(value, issue.path)) }];
    const known = keysAt?.(issue.path) ?? [];
    return issue.keys.map((key) => {
      const suggestion = nearest(key, known);
      const message = `is not a known key${suggestion ? `; did you mean "${suggestion}"?` : ''}`;
      return { path: [...issue.path, key], message };
    });
  });
}

/** Describes an issue as a predicate that follows the name of the value: `must be a number, not a string`. */
export function problemText(issue: z.core.$ZodIssue, value: unknown): string {
  if (!ZOD_DEFAULT_MESSAGE.test(issue.message)) return issue.message;
  switch (issue.code) {
    case 'invalid_type':
      if (value === undefined) return 'is missing';
      if (Number.isNaN(value)) return `must be ${withArticle(issue.expected)}`;
      return `must be ${withArticle(issue.expected)}, not ${typeName(value, issue.expected)}`;
    case 'invalid_value':
      return oneOf(issue.values.map(String), value);
    case 'invalid_format':
      if (issue.format === 'regex') return `must match ${issue.pattern}`;
      return FORMATS[issue.format] ?? `is not a valid ${issue.format}`;
    case 'too_small':
      return issue.inclusive === false ? `must be more than ${issue.minimum}` : atLeast(issue);
    case 'too_big':
      return issue.inclusive === false ? `must be less than ${issue.maximum}` : atMost(issue);
    case 'not_multiple_of':
      return `must be a multiple of ${issue.divisor}`;
    case 'invalid_union':
      return alternatives(issue, value);
    case 'invalid_key':
      return `is not a valid name: ${issue.issues.map((inner) => problemText(inner, issue.path.at(-1))).join('; ')}`;
    case 'unrecognized_keys':
      return `has unknown keys: ${issue.keys.join(', ')}`;
    case 'invalid_element':
      return `contains an invalid item: ${issue.issues.map((inner) => problemText(inner, inner.input)).join('; ')}`;
    default:
      return 'is not valid';
  }
}

function oneOf(choices: readonly string[], value: unknown): string {
  if (value === undefined) return `is missing; it must be one of ${choices.join(', ')}`;
  if (choices.length === 1) return `must be ${choices[0]}`;
  const suggestion = typeof value === 'string' ? nearest(value, choices) : undefined;
  return `must be one of ${choices.join(', ')}${suggestion ? `; did you mean ${suggestion}?` : ''}`;
}

const UNITS: Readonly<Record<string, string>> = { string: 'characters', array: 'items', set: 'items' };

function atLeast({ origin, minimum }: z.core.$ZodIssueTooSmall): string {
  const unit = UNITS[origin];
  if (unit && Number(minimum) === 1) return 'must not be empty';
  return unit ? `must have at least ${minimum} ${unit}` : `must be at least ${minimum}`;
}

function atMost({ origin, maximum }: z.core.$ZodIssueTooBig): string {
  const unit = UNITS[origin];
  return unit ? `must have at most ${maximum} ${unit}` : `must be at most ${maximum}`;
}

/**
 * Describes the problems of the union options that match the value best. The best options have their first problem at
 * the longest path.
 */
function alternatives(issue: z.core.$ZodIssueInvalidUnion, value: unknown): string {
  if (value === undefined) return 'is missing';
  if (issue.errors.length === 0) {
    const choices = [...issue.message.matchAll(/'([^']+)'/g)].map(([, choice]) => choice!);
    return choices.length > 0 ? oneOf(choices, value) : 'matches none of the options';
  }
  const problems = issue.errors.flatMap((issues) => {
    const [first] = problemsOf(issues.slice(0, 1), value);
    return first ? [first] : [];
  });
  const deepest = Math.max(...problems.map(({ path }) => path.length));
  const texts = problems
    .filter(({ path }) => path.length === deepest)
    .map(({ path, message }) => (path.length > 0 ? `${formatPath(path)}: ${message}` : message));
  return [...new Set(texts)].join(', or ');
}

/** Formats a path in the form `webhooks[0].auth.type`. */
export function formatPath(path: ReadonlyArray<PropertyKey>): string {
  return path
    .map((part, index) => (typeof part === 'number' ? `[${part}]` : `${index > 0 ? '.' : ''}${String(part)}`))
    .join('');
}

export function valueAt(value: unknown, path: readonly PropertyKey[]): unknown {
  let current = value;
  for (const key of path) current = (current as Record<PropertyKey, unknown> | null | undefined)?.[key];
  return current;
}

/**
 * Describes the type of a value. Whole numbers and fractions are distinguished only if `expected` is `int` or not
 * given.
 */
export function typeName(value: unknown, expected?: string): string {
  if (value === undefined) return 'absent';
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'a list';
  if (typeof value === 'number' && (expected === 'int' || expected === undefined))
    return Number.isInteger(value) ? 'a whole number' : 'a fraction';
  return withArticle(typeof value);
}

export function withArticle(type: string): string {
  if (type === 'int') return 'a whole number';
  if (type === 'array' || type === 'tuple') return 'a list';
  if (type === 'record') return 'an object';
  return /^[aeiou]/.test(type) ? `an ${type}` : `a ${type}`;
}
