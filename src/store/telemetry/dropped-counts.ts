import type { DroppedCounts, DroppedLines, LogFilter } from '../ports/telemetry.ts';

const MINUTE_MS = 60_000;

/** Value stored for an unknown tenant. No tenant id contains `?`. */
export const UNKNOWN_TENANT = '?';

export const minuteOf = (time: number): number => time - (time % MINUTE_MS);

/** Sum of dropped records of one kind, of known or unknown tenants. */
export interface DroppedSum {
  kind: DroppedLines['kind'];
  isUnknown: 0 | 1 | boolean;
  count: number;
}

export function droppedCountsOf(
  rows: readonly DroppedSum[],
  { tenantId }: Pick<LogFilter, 'tenantId'>,
): DroppedCounts {
  const counts: DroppedCounts = { logs: 0, events: 0, unattributed: 0 };
  for (const row of rows) {
    if (row.isUnknown) counts.unattributed += row.count;
    if (!row.isUnknown || tenantId === undefined) counts[row.kind] += row.count;
  }
  return counts;
}
