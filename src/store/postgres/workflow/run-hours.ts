import { HOUR_COUNTS_MS } from '../../hour-of.ts';
import type { HourRange, RunHourCounts } from '../../ports/index.ts';
import type { Sql } from '../named-sql.ts';

const part = (table: string): string => `
  select hour, started, succeeded, failed, cancelled, first_seq, last_seq from svc.${table}
  where tenant_id = :tenantId and hour >= :from and hour < :to`;
/** Counts and run numbers of the hours from `:from` to `:to`, several rows per hour. */
const HOURS = `(${part('run_hour')} union all ${part('run_hour_change')}) as counted`;

export function runHours(sql: Sql, tenantId: string, range: HourRange): Promise<RunHourCounts[]> {
  return sql<RunHourCounts>(
    `select hour, sum(started)::bigint as started, sum(succeeded)::bigint as succeeded, sum(failed)::bigint as failed,
       sum(cancelled)::bigint as cancelled
     from ${HOURS} group by hour order by hour`,
    { tenantId, ...range },
  );
}

/** Returns the lowest and the highest number of the runs of these hours, or null if there are none. */
export async function runNumbersOf(
  sql: Sql,
  tenantId: string,
  range: HourRange,
): Promise<{ first: number | null; last: number | null }> {
  const [numbers] = await sql<{ first: number | null; last: number | null }>(
    `select min(first_seq) as first, max(last_seq) as last from ${HOURS}`,
    { tenantId, ...range },
  );
  return numbers!;
}

/** Adds the latest changes to the counts. Deletes old counts, except for hours whose runs are not deleted yet. */
export async function settleRunHours(sql: Sql, now: number): Promise<void> {
  await sql(`
    with changes as (
      delete from svc.run_hour_change where ctid in (select ctid from svc.run_hour_change for update skip locked)
      returning *
    )
    insert into svc.run_hour as total (tenant_id, hour, started, succeeded, failed, cancelled, first_seq, last_seq)
    select tenant_id, hour, sum(started), sum(succeeded), sum(failed), sum(cancelled), min(first_seq), max(last_seq)
    from changes group by tenant_id, hour order by tenant_id, hour
    on conflict (tenant_id, hour) do update set started = total.started + excluded.started,
      succeeded = total.succeeded + excluded.succeeded, failed = total.failed + excluded.failed,
      cancelled = total.cancelled + excluded.cancelled, first_seq = least(total.first_seq, excluded.first_seq),
      last_seq = greatest(total.last_seq, excluded.last_seq)`);
  await sql(
    // With `limit 1`, the planner looks up one run per hour instead of joining all runs.
    `delete from svc.run_hour h where hour < :before and coalesce((
       select seq from svc.run where run.tenant_id = h.tenant_id and seq >= h.first_seq order by seq limit 1
     ), h.last_seq + 1) > h.last_seq`,
    { before: now - HOUR_COUNTS_MS },
  );
}
