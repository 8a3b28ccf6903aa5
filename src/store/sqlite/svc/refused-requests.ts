import type {
  RefusedRequest,
  RefusedRequestLimits,
  RefusedRequestStore,
  SecretKey,
} from '../../ports/index.ts';
import type { Database } from '../database.ts';

export const REFUSED_REQUESTS = `
  create table refused_request (
    webhook_id text primary key,
    namespace_id text not null,
    plugin_id text not null,
    event text not null,
    instance_id text not null,
    received_at integer not null,
    sealed text not null,
    bytes integer not null generated always as (length(sealed)) stored
  ) strict;
  create index refused_request_webhook
    on refused_request (namespace_id, plugin_id, event, instance_id, received_at, bytes);
  create index refused_request_age on refused_request (received_at);`;

/** Number of requests that one deletion removes above the total limit. */
const EVICTED = 20;

/** Encrypted requests of refused deliveries. */
export function sqliteRefusedRequests(db: Database): RefusedRequestStore {
  const sql = statements(db);
  const add = (requests: readonly RefusedRequest[], limits: RefusedRequestLimits): void => {
    for (const request of requests) {
      sql.insert.run(request);
      sql.shrinkWebhook.run({ ...request, maxBytes: limits.webhookBytes });
    }
    while ((sql.total.get() ?? 0) > limits.totalBytes) {
      const namespaceId = sql.largest.get()!;
      sql.evict.run({ namespaceId, limit: EVICTED });
    }
  };
  return {
    add: (requests, limits) => db.write(() => add(requests, limits)),
    find: (webhookId) => db.read(() => sql.find.get({ webhookId })),
    delete: (webhookId) => db.write(() => void sql.delete.run({ webhookId })),
    prune: (receivedBefore, limit) => db.write(() => sql.prune.run({ receivedBefore, limit }).changes),
  };
}

function statements(db: Database) {
  return {
    insert: db.prepare<[RefusedRequest]>(`
      insert or ignore into refused_request (webhook_id, namespace_id, plugin_id, event, instance_id, received_at, sealed)
      values (:webhookId, :namespaceId, :pluginId, :event, :instanceId, :receivedAt, :sealed)`),
    shrinkWebhook: db.prepare<[SecretKey & { maxBytes: number }]>(`
      delete from refused_request where rowid in (
        select id from (
          select rowid as id, sum(bytes) over (order by received_at desc, rowid desc) as size from refused_request
          where namespace_id = :namespaceId and plugin_id = :pluginId and event = :event and instance_id = :instanceId)
        where size > :maxBytes)`),
    total: db.prepare<[], number | null>('select sum(bytes) from refused_request').pluck(),
    largest: db
      .prepare<[], string>(
        'select namespace_id from refused_request group by namespace_id order by sum(bytes) desc limit 1',
      )
      .pluck(),
    evict: db.prepare<[{ namespaceId: string; limit: number }]>(`
      delete from refused_request where rowid in (
        select rowid from refused_request where namespace_id = :namespaceId order by received_at limit :limit)`),
    find: db.prepare<[{ webhookId: string }], RefusedRequest>(`
      select webhook_id as webhookId, namespace_id as namespaceId, plugin_id as pluginId, event,
        instance_id as instanceId, received_at as receivedAt, sealed
      from refused_request where webhook_id = :webhookId`),
    delete: db.prepare<[{ webhookId: string }]>('delete from refused_request where webhook_id = :webhookId'),
    prune: db.prepare<[{ receivedBefore: number; limit: number }]>(`
      delete from refused_request where rowid in (
        select rowid from refused_request where received_at < :receivedBefore order by received_at limit :limit)`),
  };
}
