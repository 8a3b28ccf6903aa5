import type { z } from 'zod';
import { nearest } from './nearest.ts';

/** A fault that a schema found, in words of ours. `path` leads to the key that is wrong. */
export interface SchemaProblem {
  path: PropertyKey[];
  message: string;
}

/** What zod says by itself; a schema with a message of its own knows better. */
const ZODS_OWN = /^(?:Invalid|Too|Unrecognized|Input not)\b/;

const FORMATS: Readonly<Record<string, string>> = {
  uuid: 'must be an id such as 01b8dac5-b5c2-7c27-a83c-4825204b1967',
  url: 'must be an address such as https://svc.example.com',
  datetime: 'must be a time such as 2030-01-31T12:00:00Z',
  email: 'must be an email address',
};

/** Every issue as a problem, one for each unknown key. `keysAt` lets a misspelt key name the one that was meant. */
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
      const meant = nearest(key, known);
      const message = `is not a known key${meant ? `; did you mean "${meant}"?` : ''}`;
      return { path: [...issue.path, key], message };
    });
  });
}

/** What is wrong with a value, in words that follow its name: `must be a number, not a string`. */
export function problemText(issue: z.core.$ZodIssue, value: unknown): string {
  if (!ZODS_OWN.test(issue.message)) return issue.message;
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
      return `holds what is not valid: ${issue.issues.map((inner) => problemText(inner, inner.input)).join('; ')}`;
    default:
      return 'is not valid';
  }
}

function oneOf(choices: readonly string[], value: unknown): string {
  if (value === undefined) return `is missing; it must be one of ${choices.join(', ')}`;
  if (choices.length === 1) return `must be ${choices[0]}`;
  const meant = typeof value === 'string' ? nearest(value, choices) : undefined;
  return `must be one of ${choices.join(', ')}${meant ? `; did you mean ${meant}?` : ''}`;
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

/** The alternative that fits furthest says most; where none goes further, all are named. */
function alternatives(issue: z.core.$ZodIssueInvalidUnion, value: unknown): string {
  if (value === undefined) return 'is missing';
  if (issue.errors.length === 0) {
    const choices = [...issue.message.matchAll(/'([^']+)'/g)].map(([, choice]) => choice!);
    return choices.length > 0 ? oneOf(choices, value) : 'fits no alternative';
  }
  const told = issue.errors.flatMap((issues) => {
    const [first] = problemsOf(issues.slice(0, 1), value);
    return first ? [first] : [];
  });
  const deepest = Math.max(...told.map(({ path }) => path.length));
  const texts = told
    .filter(({ path }) => path.length === deepest)
    .map(({ path, message }) => (path.length > 0 ? `${formatPath(path)}: ${message}` : message));
  return [...new Set(texts)].join(', or ');
}

/** `webhooks[0].auth.type`. */
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

/** `expected` tells which words make a difference: a number that must be whole is a fraction. */
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
