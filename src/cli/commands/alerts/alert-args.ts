import { z } from 'zod';
import { ALL_NAMESPACES, type RoleNamespace } from '../../../contracts/index.ts';
import { UsageError } from '../../parse-args.ts';

export const everywhere = z
  .boolean()
  .default(false)
  .describe('act for operators: all namespaces and the platform');

/** Returns the query that selects the namespace of rules, channels and silences. */
export function scopeOf(isEverywhere: boolean): { namespaceId?: z.infer<typeof RoleNamespace> } {
  return isEverywhere ? { namespaceId: ALL_NAMESPACES } : {};
}

const UNITS: Readonly<Record<string, number>> = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** Parses a duration such as `90m`, `2h` or `7d`. Throws UsageError for another text. */
export function durationMs(text: string): number {
  const [, amount, unit] = /^(\d{1,6})([smhd])$/.exec(text) ?? [];
  if (amount === undefined || unit === undefined || Number(amount) === 0)
    throw new UsageError(`"${text}" is not a duration.`, {
      hint: 'Use seconds, minutes, hours or days: 30m, 2h, 7d',
    });
  return Number(amount) * UNITS[unit]!;
}
