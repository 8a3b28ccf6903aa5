import {
  durationFault,
  durationMs,
  EXPRESSION_OPENING,
  givenTwice,
  MAX_DURATION_MS,
} from '../../../../../contracts/index.ts';
import type { JsonValue } from '../../../../../store/ports/index.ts';
import { StepFailure } from '../retry-policy.ts';

/** A step with this timeout has no time limit. */
export const NO_LIMIT_MS = MAX_DURATION_MS;
export const PURE = { takesSlot: false, defaultTimeoutMs: NO_LIMIT_MS, isIdempotent: () => true } as const;
export type Issue = { path: string[]; message: string };

export function unknownKeys(input: Record<string, JsonValue>, known: string[]): Issue[] {
  return Object.keys(input)
    .filter((key) => !known.includes(key))
    .map((key) => ({ path: [key], message: `is unknown; the known fields are ${known.join(', ')}` }));
}

export function invalid(message: string): StepFailure {
  return new StepFailure('validation', { code: 'VALIDATION_ERROR', message, details: {} });
}

/** Latest time that a Date can represent, in ms since the epoch. */
export const END_OF_TIME = 8.64e15;

export function later(now: number, value: JsonValue | undefined, name: string): number {
  const ms = typeof value === 'string' ? Number(value) : value;
  if (typeof ms === 'number' && ms >= 0 && now + ms <= END_OF_TIME) return Math.ceil(now + ms);
  throw invalid(`"${name}" must be a number of milliseconds, not ${JSON.stringify(value)}.`);
}

/** Returns the time after a duration such as `24h`. Throws StepFailure for any other value. */
export function afterDuration(now: number, value: JsonValue | undefined, what: string): number {
  const fault = durationFault(value);
  if (fault !== undefined) throw invalid(`${what} ${fault}, not ${JSON.stringify(value)}.`);
  return now + durationMs(value)!;
}

/** Returns the faults of a duration that has no expression, in the field `key`. */
export function durationIssues(input: Record<string, JsonValue>, key: string): Issue[] {
  const value = input[key];
  if (value === undefined || (typeof value === 'string' && value.includes(EXPRESSION_OPENING))) return [];
  const message = durationFault(value);
  return message === undefined ? [] : [{ path: [key], message }];
}

/** Returns the faults of `timeout` and `timeoutMs`, of which a step may have one. */
export function timeoutIssues(input: Record<string, JsonValue>): Issue[] {
  if (!('timeout' in input && 'timeoutMs' in input)) return durationIssues(input, 'timeout');
  return [{ path: ['timeout'], message: givenTwice('timeout', 'timeoutMs') }];
}

/** Returns the end of a wait with a time limit, or null without a limit. */
export function timeLimit({ timeout, timeoutMs }: Record<string, JsonValue>, now: number): number | null {
  if (timeout != null) return afterDuration(now, timeout, '"timeout"');
  return timeoutMs == null ? null : later(now, timeoutMs, 'timeoutMs');
}

export function textOf(value: JsonValue | undefined): string {
  if (typeof value === 'string') return value;
  throw invalid(`A text is needed here, not ${JSON.stringify(value)}.`);
}
