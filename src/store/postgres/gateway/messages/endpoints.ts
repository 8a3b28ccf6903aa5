import { sql, type Transaction } from 'kysely';
import { changedEndpoint, endpointOf, endpointRow } from '../../../message-rows.ts';
import type { OutgoingEndpointStore, StoredEndpoint } from '../../../ports/index.ts';
import type { PostgresDatabase } from '../../database.ts';
import type { Tables } from '../../tables.ts';
import type { PostgresFeed } from '../feed.ts';

/** Endpoints that receive messages. @spec docs/messages.md */
export function postgresOutgoingEndpoints(
  database: PostgresDatabase,
  feed: PostgresFeed,
): OutgoingEndpointStore {
  /** Locks an endpoint, changes it, and announces the change. */
  const change = (
    namespaceId: string,
    id: string,
    next: (endpoint: StoredEndpoint) => StoredEndpoint,
  ): Promise<StoredEndpoint | undefined> =>
    database.transaction(async (query) => {
      const row = await query
        .selectFrom('outgoingEndpoint')
        .selectAll()
        .where('id', '=', id)
        .where('namespaceId', '=', namespaceId)
        .forUpdate()
        .executeTakeFirst();
      if (!row) return undefined;
      const endpoint = next(endpointOf(row));
      await query.updateTable('outgoingEndpoint').set(endpointRow(endpoint)).where('id', '=', id).execute();
      await feed.add(query, 'endpoints', id);
      return endpoint;
    });

  return {
    ...reads(database),
    add: (endpoint, max) =>
      database.transaction(async (query) => {
        // Concurrent creates of a namespace would count the same endpoints, and exceed the limit.
        await sql`select pg_advisory_xact_lock(hashtextextended(${`endpoints ${endpoint.namespaceId}`}, 0))`.execute(
          query,
        );
        if ((await countOf(query, endpoint.namespaceId)) >= max) return false;
        await query.insertInto('outgoingEndpoint').values(endpointRow(endpoint)).execute();
        await feed.add(query, 'endpoints', endpoint.id);
        return true;
      }),
    update: (namespaceId, id, changes) =>
      change(namespaceId, id, (endpoint) => changedEndpoint(endpoint, changes)),
    rotate: (namespaceId, id, { secret, previousExpiresAt, now }) =>
      change(namespaceId, id, (endpoint) => ({
        ...endpoint,
        ...{ secret, previousSecret: endpoint.secret, previousSecretExpiresAt: previousExpiresAt },
        updatedAt: now,
      })),
    disable: (id, reason, at) =>
      database.transaction(async (query) => {
        const { numUpdatedRows } = await query
          .updateTable('outgoingEndpoint')
          .set({ disabledReason: reason, disabledAt: at, updatedAt: at })
          .where('id', '=', id)
          .where('disabledReason', 'is', null)
          .executeTakeFirst();
        if (numUpdatedRows === 0n) return false;
        await feed.add(query, 'endpoints', id);
        return true;
      }),
    remove: (namespaceId, id) =>
      database.transaction(async (query) => {
        const { numDeletedRows } = await query
          .deleteFrom('outgoingEndpoint')
          .where('id', '=', id)
          .where('namespaceId', '=', namespaceId)
          .executeTakeFirst();
        if (numDeletedRows === 0n) return false;
        await feed.add(query, 'endpoints', id);
        return true;
      }),
  };
}

function reads(database: PostgresDatabase) {
  return {
    async all() {
      const rows = await database.run((query) => query.selectFrom('outgoingEndpoint').selectAll().execute());
      return rows.map(endpointOf);
    },
    async read(ids) {
      if (ids.length === 0) return [];
      const rows = await database.run((query) =>
        query.selectFrom('outgoingEndpoint').selectAll().where('id', 'in', ids).execute(),
      );
      return rows.map(endpointOf);
    },
    async list({ namespaceId, application, disabled, before, limit }) {
      const rows = await database.run((query) => {
        let list = query.selectFrom('outgoingEndpoint').selectAll().where('namespaceId', '=', namespaceId);
        if (application !== undefined) list = list.where('application', '=', application);
        if (disabled !== undefined) list = list.where('disabledReason', disabled ? 'is not' : 'is', null);
        if (before !== undefined) list = list.where('id', '<', before);
        return list.orderBy('id', 'desc').limit(limit).execute();
      });
      return rows.map(endpointOf);
    },
    async find(namespaceId, id) {
      const row = await database.run((query) =>
        query
          .selectFrom('outgoingEndpoint')
          .selectAll()
          .where('id', '=', id)
          .where('namespaceId', '=', namespaceId)
          .executeTakeFirst(),
      );
      return row && endpointOf(row);
    },
  } satisfies Partial<OutgoingEndpointStore>;
}

async function countOf(query: Transaction<Tables>, namespaceId: string): Promise<number> {
  const { count } = await query
    .selectFrom('outgoingEndpoint')
    .select((build) => build.fn.countAll<number>().as('count'))
    .where('namespaceId', '=', namespaceId)
    .executeTakeFirstOrThrow();
  return count;
}
