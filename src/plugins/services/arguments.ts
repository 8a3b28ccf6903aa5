import type { z } from 'zod';
import { firstIssueIn } from '../../kit/data/first-issue.ts';
import { PlatformError } from '../../kit/errors/errors.ts';

/**
 * The functions in this file validate arguments from plugin code. Each function throws VALIDATION_ERROR with the name
 * of an invalid argument.
 */

export function textArgument(value: unknown, name: string, maxChars: number): string {
  if (typeof value === 'string' && value.length > 0 && value.length <= maxChars) return value;
  throw invalid(`${name} must be a text of 1 to ${maxChars} characters`);
}

export function optionsArgument(value: unknown): Record<string, unknown> {
  if (value === undefined || value === null) return {};
  if (typeof value === 'object' && !Array.isArray(value)) return value as Record<string, unknown>;
  throw invalid('the options must be an object');
}

/** Validates an optional integer argument against `min` and `max`. Returns undefined for a missing argument. */
export function wholeArgument(value: unknown, name: string, min: number, max: number): number | undefined {
  if (value === undefined || value === null) return undefined;
  if (Number.isSafeInteger(value) && (value as number) >= min && (value as number) <= max)
    return value as number;
  throw invalid(`${name} must be a whole number from ${min} to ${max}`);
}

/** Parses an argument with a schema. Throws VALIDATION_ERROR if the argument does not match the schema. */
export function parsedArgument<Schema extends z.ZodType>(
  schema: Schema,
  value: unknown,
  name: string,
): z.output<Schema> {
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  throw invalid(firstIssueIn(parsed.error, name));
}

export function invalid(what: string): PlatformError {
  return new PlatformError('VALIDATION_ERROR', `${what[0]!.toUpperCase()}${what.slice(1)}.`);
}
