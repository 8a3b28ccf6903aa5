import type { CountsQuery, countRuns, ReplyOf } from '../../../../contracts/index.ts';
import type { RunHourCounts, RunStore } from '../../../../store/ports/index.ts';
import { countedHours, hoursWith, openOf } from '../../../hour-counts.ts';

const NONE = { total: 0, open: 0, succeeded: 0, failed: 0, cancelled: 0 };

/** Counts runs per hour of their creation. Throws VALIDATION_ERROR for an invalid range. */
export async function countRunsByHour(
  store: Pick<RunStore, 'countByHour'>,
  tenantId: string,
  query: CountsQuery,
  now: number,
): Promise<ReplyOf<typeof countRuns>> {
  const range = countedHours(query, now);
  return hoursWith(range, (await store.countByHour(tenantId, range)).map(viewHour), NONE);
}

function viewHour({ hour, started, succeeded, failed, cancelled }: RunHourCounts) {
  const open = openOf(started, [succeeded, failed, cancelled]);
  return { hour, total: open + succeeded + failed + cancelled, open, succeeded, failed, cancelled };
}
