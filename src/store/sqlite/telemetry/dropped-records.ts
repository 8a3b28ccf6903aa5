import type { DroppedCounts, DroppedLines, LogFilter } from '../../ports/telemetry.ts';
import {
  type DroppedSum,
  droppedCountsOf,
  minuteOf,
  UNKNOWN_TENANT,
} from '../../telemetry/dropped-counts.ts';
import type { Database } from '../database.ts';

/** Returns a function that adds counts of dropped records. The function must be called in a transaction. */
export function droppedAdder(db: Database): (dropped: readonly DroppedLines[]) => void {
  const add = db.prepare<[DroppedLines & { tenantId: string }]>(`
    insert into telemetry_dropped (minute, service, tenant_id, kind, count)
    values (:minute, :service, :tenantId, :kind, :count)
    on conflict do update set count = count + excluded.count`);
  return (dropped) => {
    for (const each of dropped) add.run({ ...each, tenantId: each.tenantId ?? UNKNOWN_TENANT });
  };
}

/**
 * Returns a function that counts the dropped records for a filter. The time range is extended to whole minutes, because
 * counts are stored per minute.
 */
export function droppedCounter(db: Database): (filter: LogFilter) => DroppedCounts {
  type Values = { from: number; to: number; tenantId: string | null; services: string | null };
  const count = db.prepare<[Values], DroppedSum>(`
    select kind, tenant_id = '${UNKNOWN_TENANT}' as isUnknown, sum(count) as count from telemetry_dropped
    where minute >= :from and minute < :to
      and (:tenantId is null or tenant_id in (:tenantId, '${UNKNOWN_TENANT}'))
      and (:services is null or service in (select value from json_each(:services)))
    group by 1, 2`);
  return ({ from = 0, to = Number.MAX_SAFE_INTEGER, tenantId, services }) => {
    const values = {
      from: minuteOf(from),
      to,
      tenantId: tenantId ?? null,
      services: services ? JSON.stringify(services) : null,
    };
    return droppedCountsOf(count.all(values), { tenantId });
  };
}
