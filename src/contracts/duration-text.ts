const UNIT_MS = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;
export const DURATION_PATTERN = /^(\d{1,12})(ms|s|m|h|d)$/;
/** Longest duration that a definition accepts as a time limit. */
export const MAX_DURATION_MS = 366 * UNIT_MS.d;

/** Returns the milliseconds of a duration such as `30s`. Returns undefined for any other value. */
export function durationMs(value: unknown): number | undefined {
  const parts = typeof value === 'string' ? DURATION_PATTERN.exec(value) : null;
  return parts ? Number(parts[1]) * UNIT_MS[parts[2] as keyof typeof UNIT_MS] : undefined;
}
