import type { DroppedCounts, DroppedLines, LogFilter } from '../ports/telemetry.ts';
import type { Database } from './database.ts';

const MINUTE_MS = 60_000;

export const minuteOf = (time: number): number => time - (time % MINUTE_MS);

/** Returns what adds counts of dropped lines; called within a transaction. */
export function droppedAdder(db: Database): (dropped: readonly DroppedLines[]) => void {
  const add = db.prepare<[DroppedLines]>(`
    insert into telemetry_dropped (minute, service, tenant_id, kind, count)
    values (:minute, :service, :tenantId, :kind, :count)
    on conflict do update set count = count + excluded.count`);
  return (dropped) => {
    for (const each of dropped) add.run(each);
  };
}

/** Returns what counts the lines that a filter's result may lack: of whole minutes, as nothing else is known of them. */
export function droppedCounter(db: Database): (filter: LogFilter) => DroppedCounts {
  type Values = { from: number; to: number; tenantId: string | null; services: string | null };
  const count = db.prepare<[Values], { kind: DroppedLines['kind']; count: number }>(`
    select kind, sum(count) as count from telemetry_dropped
    where minute >= :from and minute < :to and (:tenantId is null or tenant_id = :tenantId)
      and (:services is null or service in (select value from json_each(:services)))
    group by kind`);
  return ({ from = 0, to = Number.MAX_SAFE_INTEGER, tenantId, services }) => {
    const counts: DroppedCounts = { logs: 0, events: 0 };
    const values = {
      from: minuteOf(from),
      to,
      tenantId: tenantId ?? null,
      services: services ? JSON.stringify(services) : null,
    };
    for (const row of count.all(values)) counts[row.kind] = row.count;
    return counts;
  };
}
