import { DURATION_FAULT, durationMs, EXPRESSION_OPENING } from '../../../../../contracts/index.ts';
import { days } from '../../../../../kit/time/duration.ts';
import type { JsonValue } from '../../../../../store/ports/index.ts';
import { StepFailure } from '../retry-policy.ts';

/** Longest timeout that a definition accepts. A step with this timeout has no time limit. */
export const NO_LIMIT_MS = days(366);
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
export function afterDuration(now: number, value: JsonValue | undefined, name: string): number {
  const ms = durationMs(value);
  if (ms === undefined) throw invalid(`"${name}" ${DURATION_FAULT}, not ${JSON.stringify(value)}.`);
  return later(now, ms, name);
}

/** Returns the faults of a duration that has no expression, in the field `key`. */
export function durationIssues(input: Record<string, JsonValue>, key: string): Issue[] {
  const value = input[key];
  if (value === undefined || durationMs(value) !== undefined) return [];
  if (typeof value === 'string' && value.includes(EXPRESSION_OPENING)) return [];
  return [{ path: [key], message: DURATION_FAULT }];
}

/** Returns the faults of `timeout` and `timeoutMs`, of which a step may have one. */
export function timeoutIssues(input: Record<string, JsonValue>): Issue[] {
  if (!('timeout' in input && 'timeoutMs' in input)) return durationIssues(input, 'timeout');
  return [{ path: ['timeout'], message: 'is given twice: remove "timeout" or "timeoutMs"' }];
}

/** Returns the end of a wait with a time limit, or null without a limit. */
export function timeLimit({ timeout, timeoutMs }: Record<string, JsonValue>, now: number): number | null {
  if (timeout != null) return afterDuration(now, timeout, 'timeout');
  return timeoutMs == null ? null : later(now, timeoutMs, 'timeoutMs');
}

export function textOf(value: JsonValue | undefined): string {
  if (typeof value === 'string') return value;
  throw invalid(`A text is needed here, not ${JSON.stringify(value)}.`);
}
