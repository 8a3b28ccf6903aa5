import { HOUR_COUNTS_MS } from '../../../hour-of.ts';
import type { DeliveryHourCounts, HourRange } from '../../../ports/index.ts';
import type { Sql } from '../../named-sql.ts';

/** Returns the counts of the hours from `from` to `to`. */
export function deliveryHours(
  sql: Sql,
  namespaceId: string,
  range: HourRange,
): Promise<DeliveryHourCounts[]> {
  const part = (table: string): string => `
    select hour, received, succeeded, failed, unhandled from svc.${table}
    where namespace_id = :namespaceId and hour >= :from and hour < :to`;
  return sql<DeliveryHourCounts>(
    `select hour, sum(received)::bigint as received, sum(succeeded)::bigint as succeeded, sum(failed)::bigint as failed,
       sum(unhandled)::bigint as unhandled
     from (${part('delivery_hour')} union all ${part('delivery_hour_change')}) as counted
     group by hour order by hour`,
    { namespaceId, ...range },
  );
}

/** Adds the latest changes to the counts, and deletes counts that exceed their retention. */
export async function settleDeliveryHours(sql: Sql, now: number): Promise<void> {
  await sql(`
    with changes as (
      delete from svc.delivery_hour_change where ctid in (
        select ctid from svc.delivery_hour_change for update skip locked)
      returning *
    )
    insert into svc.delivery_hour as total (namespace_id, hour, received, succeeded, failed, unhandled)
    select namespace_id, hour, sum(received), sum(succeeded), sum(failed), sum(unhandled)
    from changes group by namespace_id, hour order by namespace_id, hour
    on conflict (namespace_id, hour) do update set received = total.received + excluded.received,
      succeeded = total.succeeded + excluded.succeeded, failed = total.failed + excluded.failed,
      unhandled = total.unhandled + excluded.unhandled`);
  await sql('delete from svc.delivery_hour where hour < :before', { before: now - HOUR_COUNTS_MS });
}
