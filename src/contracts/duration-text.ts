const UNIT_MS = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;
export const DURATION_PATTERN = /^(\d{1,12})(ms|s|m|h|d)$/;
/** Longest duration that a definition accepts. */
export const MAX_DURATION_MS = 366 * UNIT_MS.d;

/** Returns the milliseconds of a duration such as `30s`. Returns undefined for any other value. */
export function durationMs(value: unknown): number | undefined {
  const parts = typeof value === 'string' ? DURATION_PATTERN.exec(value) : null;
  return parts ? Number(parts[1]) * UNIT_MS[parts[2] as keyof typeof UNIT_MS] : undefined;
}

export const DURATION_FAULT = 'must be a duration such as 30s, 5m, 24h or 7d';
export const RANGE_FAULT = 'must be a duration from 1ms to 366d';

/** Returns the fault of a duration in a definition, or undefined. */
export function durationFault(value: unknown): string | undefined {
  const ms = durationMs(value);
  if (ms === undefined) return DURATION_FAULT;
  return ms > 0 && ms <= MAX_DURATION_MS ? undefined : RANGE_FAULT;
}

/** Returns the fault of a field that is given as a duration and in milliseconds. */
export const givenTwice = (duration: string, ms: string): string =>
  `is given twice: remove "${duration}" or "${ms}"`;
