import { days } from '../../../kit/time/duration.ts';
import type { PostgresDatabase } from '../database.ts';
import { DAY_MS, type Kind } from './schema.ts';

/** Time range in epoch ms. `to` is exclusive. */
export interface Window {
  from: number;
  to: number;
}

/**
 * Maximum number of days per statement. A statement locks every partition and index that it might read, and PostgreSQL
 * has room for only a few thousand locks.
 */
const MAX_DAYS = 32;

/** Returns the days of all records with ids above `after` as a time range, or undefined if there are none. */
export async function storedRange(
  database: PostgresDatabase,
  kind: Kind,
  after = 0,
): Promise<Window | undefined> {
  const { rows } = await database.sql<{ from: number | null; to: number }>(
    `select min(day) as from, max(day) + ${DAY_MS} as to from svc.telemetry_day
     where kind = $1 and rows > 0 and last_id > $2`,
    [kind, after],
  );
  const { from, to } = rows[0]!;
  return from === null ? undefined : { from, to };
}

/** Splits a time range into parts, newest first. Short parts come first, because most lists end there. */
export function newestFirst({ from, to }: Window): Window[] {
  const windows: Window[] = [];
  for (let length = 1, end = to; end > from; length = Math.min(length * 2, MAX_DAYS)) {
    const start = Math.max(from, Math.floor((end - 1) / DAY_MS) * DAY_MS - days(length - 1));
    windows.push({ from: start, to: end });
    end = start;
  }
  return windows;
}

/** Returns the part of a time range that a filter selects. */
export function within({ from, to }: Window, filter: { from?: number; to?: number }): Window {
  return {
    from: Math.max(from, Math.ceil(filter.from ?? 0)),
    to: Math.min(to, Math.ceil(filter.to ?? Number.MAX_SAFE_INTEGER)),
  };
}
