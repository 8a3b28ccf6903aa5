import type { RefusedRequest, RefusedRequestLimits, RefusedRequestStore } from '../../ports/index.ts';
import type { PostgresDatabase } from '../database.ts';
import type { Sql } from '../named-sql.ts';

export const REFUSED_REQUESTS = `
  create table svc.refused_request (
    webhook_id uuid primary key,
    namespace_id text collate "C" not null,
    plugin_id text collate "C" not null,
    event text collate "C" not null,
    instance_id text collate "C" not null,
    received_at bigint not null,
    sealed text not null,
    bytes bigint not null generated always as (octet_length(sealed)) stored
  );
  create index refused_request_webhook
    on svc.refused_request (namespace_id, plugin_id, event, instance_id, received_at, bytes);
  create index refused_request_age on svc.refused_request (received_at);`;

/** Number of requests that one deletion removes above the total limit. */
const EVICTED = 20;

/** Encrypted requests of refused deliveries. */
export function postgresRefusedRequests(database: PostgresDatabase): RefusedRequestStore {
  return {
    add: (requests, limits) => database.transact((sql) => add(sql, requests, limits)),
    async find(webhookId) {
      const [found] = await database.read((sql) => sql<RefusedRequest>(FIND, { webhookId }));
      return found;
    },
    delete: (webhookId) =>
      database.write(
        async (sql) =>
          void (await sql('delete from svc.refused_request where webhook_id = :webhookId', { webhookId })),
      ),
    async prune(receivedBefore, limit) {
      const deleted = await database.write((sql) => sql(PRUNE, { receivedBefore, limit }));
      return deleted.length;
    },
  };
}

async function add(
  sql: Sql,
  requests: readonly RefusedRequest[],
  { webhookBytes, totalBytes }: RefusedRequestLimits,
): Promise<void> {
  // Without the lock, concurrent gateways would each count only their own requests.
  await sql(`select pg_advisory_xact_lock(hashtext('svc.refused_request'))`);
  for (const request of requests) {
    await sql(INSERT, request);
    await sql(SHRINK_WEBHOOK, { ...request, maxBytes: webhookBytes });
  }
  for (;;) {
    const [largest] = await sql<{ namespaceId: string }>(LARGEST, { totalBytes });
    if (!largest) return;
    await sql(EVICT, { ...largest, limit: EVICTED });
  }
}

const INSERT = `
  insert into svc.refused_request (webhook_id, namespace_id, plugin_id, event, instance_id, received_at, sealed)
  values (:webhookId, :namespaceId, :pluginId, :event, :instanceId, :receivedAt, :sealed)
  on conflict (webhook_id) do nothing`;

const SHRINK_WEBHOOK = `
  delete from svc.refused_request where webhook_id in (
    select webhook_id from (
      select webhook_id, sum(bytes) over (order by received_at desc, webhook_id desc) as size from svc.refused_request
      where namespace_id = :namespaceId and plugin_id = :pluginId and event = :event and instance_id = :instanceId
    ) as sized where size > :maxBytes)`;

/** Returns the namespace with the most bytes if all namespaces together exceed the limit. */
const LARGEST = `
  select namespace_id as "namespaceId" from (
    select namespace_id, sum(bytes) as size, sum(sum(bytes)) over () as total
    from svc.refused_request group by namespace_id
  ) as sized where total > :totalBytes order by size desc limit 1`;

const EVICT = `
  delete from svc.refused_request where webhook_id in (
    select webhook_id from svc.refused_request where namespace_id = :namespaceId order by received_at limit :limit)`;

const FIND = `
  select webhook_id as "webhookId", namespace_id as "namespaceId", plugin_id as "pluginId", event,
    instance_id as "instanceId", received_at as "receivedAt", sealed
  from svc.refused_request where webhook_id = :webhookId`;

const PRUNE = `
  delete from svc.refused_request where webhook_id in (
    select webhook_id from svc.refused_request where received_at < :receivedBefore order by received_at limit :limit)
  returning 1 as one`;
