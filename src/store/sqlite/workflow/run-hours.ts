import { HOUR_COUNTS_MS } from '../../hour-of.ts';
import type { HourRange, RunHourCounts } from '../../ports/index.ts';
import type { Database } from '../database.ts';

/** Returns the query for counts per hour. The query must run inside `db.read`. */
export function runHourCounts(db: Database): (tenantId: string, range: HourRange) => RunHourCounts[] {
  const counts = db.prepare<[{ tenantId: string } & HourRange], RunHourCounts>(`
    select hour, started, succeeded, failed, cancelled from run_hour
    where tenant_id = :tenantId and hour >= :from and hour < :to order by hour`);
  return (tenantId, range) => counts.all({ tenantId, ...range });
}

/** Returns a function that deletes old counts, except for hours whose runs are not deleted yet. */
export function runHourPruning(db: Database): (now: number) => void {
  const prune = db.prepare<[{ before: number }]>(`
    delete from run_hour where hour < :before and not exists (
      select 1 from run where run.tenant_id = run_hour.tenant_id and seq between first_seq and last_seq)`);
  return (now) => {
    prune.run({ before: now - HOUR_COUNTS_MS });
  };
}
