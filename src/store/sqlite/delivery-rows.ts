import type { DeliveryEnd, DeliveryRecord } from '../ports/index.ts';
import type { Database } from './database.ts';
import { AFTER_ALL_TEXT } from './schema.ts';

/** The statements of the `delivery` table; to be called inside `db.read` and `db.write`. */
export function deliveryRows(db: Database) {
  const sql = statements(db);
  return {
    /** A second row of one webhookId is ignored: a note may come twice, after a lost commit. */
    insert(delivery: DeliveryRecord): void {
      sql.insert.run({ ...delivery, body: delivery.body && asBuffer(delivery.body) });
    },
    finish(webhookId: string, { status, httpStatus, steps, outcome, durationMs }: DeliveryEnd): void {
      sql.finish.run({ webhookId, status, httpStatus, steps, outcome, durationMs });
    },
    find: (webhookId: string) => sql.find.get({ webhookId }),
    unfinished: (limit: number, after: string) => sql.unfinished.all({ limit, after }),
    list: (namespaceId: string, limit: number, before: string | undefined) =>
      sql.list.all({ namespaceId, limit, before: before ?? AFTER_ALL_TEXT }),
    prune: (receivedBefore: number, limit: number) => sql.prune.run({ receivedBefore, limit }).changes,
  };
}

/** The same memory: better-sqlite3 binds Buffers, not every Uint8Array. */
function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

function statements(db: Database) {
  const head = `webhook_id as webhookId, namespace_id as namespaceId, plugin_id as pluginId, event, instance_id as instanceId,
    received_at as receivedAt, source, request_id as requestId, trace_id as traceId, mode, status, http_status as httpStatus,
    duration_ms as durationMs, attempts, steps, outcome, headers`;
  return {
    insert: db.prepare<[DeliveryRecord]>(`
      insert into delivery (webhook_id, namespace_id, plugin_id, event, instance_id, received_at, source, request_id, trace_id,
        mode, status, http_status, duration_ms, attempts, steps, outcome, headers, body)
      values (:webhookId, :namespaceId, :pluginId, :event, :instanceId, :receivedAt, :source, :requestId, :traceId,
        :mode, :status, :httpStatus, :durationMs, :attempts, :steps, :outcome, :headers, :body)
      on conflict (webhook_id) do nothing`),
    finish: db.prepare<[DeliveryEnd & { webhookId: string }]>(`
      update delivery set status = :status, http_status = :httpStatus, steps = :steps, outcome = :outcome,
        duration_ms = :durationMs, attempts = attempts + 1
      where webhook_id = :webhookId`),
    find: db.prepare<[{ webhookId: string }], DeliveryRecord>(`
      select ${head}, body from delivery where webhook_id = :webhookId`),
    unfinished: db.prepare<[{ after: string; limit: number }], DeliveryRecord>(`
      select ${head}, body from delivery where status = 'accepted' and webhook_id > :after order by webhook_id limit :limit`),
    list: db.prepare<[{ namespaceId: string; before: string | Buffer; limit: number }], DeliveryRecord>(`
      select ${head}, null as body from delivery
      where namespace_id = :namespaceId and webhook_id < :before order by webhook_id desc limit :limit`),
    // Rows lie in the order they came: looking at the oldest few finds what is old without an index on the time.
    prune: db.prepare<[{ receivedBefore: number; limit: number }]>(`
      delete from delivery where received_at < :receivedBefore and id in (
        select id from delivery where status <> 'accepted' order by id limit :limit)`),
  };
}
