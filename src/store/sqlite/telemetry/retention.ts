import type { TelemetryLimits } from '../../ports/telemetry.ts';
import type { Database } from '../database.ts';
import { usedBytes } from '../used-bytes.ts';

/** Number of rows deleted per transaction. Each transaction delays inserts by about ten milliseconds. */
const CHUNK = 2000;

/**
 * Returns a function that deletes one chunk of rows per call. Expired rows are deleted first. If the file is too large,
 * the oldest log records follow, and then the oldest events.
 */
export function telemetryPruner(db: Database): (limits: TelemetryLimits) => Promise<boolean> {
  // Rows are deleted in the order of their ids, so that a chunk is contiguous in the file.
  const oldLogs = deletion(db, 'log', 'time < ?');
  const oldEvents = deletion(db, 'event', 'ts < ?');
  const anyLogs = deletion(db, 'log', '? is not null');
  const anyEvents = deletion(db, 'event', '? is not null');
  const oldCounts = db.prepare<[number, number]>(`
    delete from event_count where (span, start, tenant_id, type, product, actor) in (
      select span, start, tenant_id, type, product, actor from event_count where start + span <= ? limit ?)`);

  const oldDropped = db.prepare<[number, number]>(`
    delete from telemetry_dropped where (minute, service, tenant_id, kind) in (
      select minute, service, tenant_id, kind from telemetry_dropped where minute < ? limit ?)`);

  const oldUses = db.prepare<[number, number]>(`
    delete from permission_use where (plugin_id, tenant_id, permission) in (
      select plugin_id, tenant_id, permission from permission_use where used_at < ? limit ?)`);

  return ({ logsBefore, eventsBefore, maxBytes }) =>
    db.write(() => {
      if (oldLogs(logsBefore) > 0 || oldEvents(eventsBefore) > 0) return true;
      if (oldCounts.run(eventsBefore, CHUNK).changes > 0) return true;
      if (oldDropped.run(Math.min(logsBefore, eventsBefore), CHUNK).changes > 0) return true;
      if (oldUses.run(eventsBefore, CHUNK).changes > 0) return true;
      if (usedBytes(db) <= maxBytes) return false;
      return anyLogs(0) > 0 || anyEvents(0) > 0;
    });
}

/** Returns a function that deletes a chunk of the oldest matching rows and returns their number. */
function deletion(db: Database, table: 'log' | 'event', condition: string): (bound: number) => number {
  const last = db
    .prepare<[number], number | null>(
      `select max(id) from (select id from (select id, ${table === 'log' ? 'time' : 'ts'} from ${table} order by id limit ${CHUNK}) where ${condition})`,
    )
    .pluck();
  const words = table === 'log' ? db.prepare<[number]>('delete from log_text where rowid <= ?') : undefined;
  const rows = db.prepare<[number]>(`delete from ${table} where id <= ?`);
  return (bound) => {
    const id = last.get(bound);
    if (id === null || id === undefined) return 0;
    words?.run(id);
    return rows.run(id).changes;
  };
}
