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

export function timeLimit(value: JsonValue | undefined, now: number): number | null {
  return value == null ? null : later(now, value, 'timeoutMs');
}

export function textOf(value: JsonValue | undefined): string {
  if (typeof value === 'string') return value;
  throw invalid(`A text is needed here, not ${JSON.stringify(value)}.`);
}
