import { HOUR_MS, MAX_COUNTED_HOURS } from '../contracts/index.ts';
import { PlatformError } from '../kit/errors/errors.ts';
import type { HourRange } from '../store/ports/index.ts';

const DEFAULT_HOURS = 24;

/**
 * Returns the whole hours that a query asks for. The default is the last 24 hours, including the current one. Throws
 * VALIDATION_ERROR for an empty or too long range.
 */
export function countedHours(
  query: { from?: number | undefined; to?: number | undefined },
  now: number,
): HourRange {
  const to = Math.ceil((query.to ?? now + 1) / HOUR_MS) * HOUR_MS;
  const from = query.from === undefined ? to - DEFAULT_HOURS * HOUR_MS : query.from - (query.from % HOUR_MS);
  if (from >= to) throw new PlatformError('VALIDATION_ERROR', 'query.from: must be before query.to.');
  if (to - from > MAX_COUNTED_HOURS * HOUR_MS)
    throw new PlatformError(
      'VALIDATION_ERROR',
      `query.from: at most ${MAX_COUNTED_HOURS / DEFAULT_HOURS} days can be counted at once.`,
    );
  return { from, to };
}

/** Returns one item per hour of the range, oldest first, and their sums. `none` is the item of an hour without records. */
export function hoursWith<Counts extends Record<string, number>>(
  { from, to }: HourRange,
  counted: ReadonlyArray<Counts & { hour: number }>,
  none: Counts,
): { from: number; to: number; items: Array<Counts & { hour: number }>; totals: Counts } {
  const known = new Map(counted.map((item) => [item.hour, item]));
  const items: Array<Counts & { hour: number }> = [];
  for (let hour = from; hour < to; hour += HOUR_MS) items.push(known.get(hour) ?? { ...none, hour });
  const sums = Object.keys(none).map((name) => [name, items.reduce((sum, item) => sum + item[name]!, 0)]);
  return { from, to, items, totals: Object.fromEntries(sums) };
}

/**
 * Returns the number of records without a final status. Records that were written before their table was counted can
 * end without having been counted, which must not lead to a negative number.
 */
export function openOf(all: number, ended: readonly number[]): number {
  return Math.max(0, all - ended.reduce((sum, count) => sum + count, 0));
}
