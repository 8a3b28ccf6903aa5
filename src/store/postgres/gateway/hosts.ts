import type { NotNull, Selectable, Transaction } from 'kysely';
import { PlatformError } from '../../../kit/errors/errors.ts';
import type { HostRecord, HostStore } from '../../ports/index.ts';
import type { PostgresDatabase, Query } from '../database.ts';
import { hasNoOwner } from '../members.ts';
import { isUniqueViolation } from '../postgres-error.ts';
import type { Tables } from '../tables.ts';
import type { PostgresFeed } from './feed.ts';

export function postgresHosts(database: PostgresDatabase, feed: PostgresFeed): HostStore {
  return {
    async register(host, client) {
      try {
        await database.transaction(async (query) => {
          await query.insertInto('client').values(client).execute();
          await query.insertInto('host').values(rowOf(host)).execute();
        });
      } catch (error) {
        if (!isUniqueViolation(error)) throw error;
        throw new PlatformError('CONFLICT', `There is already a host '${host.hostId}'.`, { cause: error });
      }
    },
    async find(hostId) {
      const row = await database.run((query) =>
        query.selectFrom('host').selectAll().where('hostId', '=', hostId).executeTakeFirst(),
      );
      return row && recordOf(row);
    },
    async list(namespaceId, { limit, after }) {
      const rows = await database.run((query) => {
        let page = query.selectFrom('host').selectAll().orderBy('hostId').limit(limit);
        if (after !== undefined) page = page.where('hostId', '>', after);
        if (namespaceId !== undefined) page = page.where('namespaceId', '=', namespaceId);
        return page.execute();
      });
      return rows.map(recordOf);
    },
    connect: (hostId, sessionId, now, owner) =>
      database.transaction((query) => connect(query, feed, { hostId, sessionId, now, owner: owner ?? null })),
    async seen(hostId, sessionId, now) {
      const { numUpdatedRows } = await database.run((query) =>
        query
          .updateTable('host')
          .set({ lastSeenAt: now })
          .where('hostId', '=', hostId)
          .where('sessionId', '=', sessionId)
          .executeTakeFirst(),
      );
      return numUpdatedRows === 1n;
    },
    async disconnect(hostId, sessionId, now) {
      await database.run((query) =>
        query
          .updateTable('host')
          .set({ sessionId: null, connectedAt: null, lastSeenAt: now, owner: null })
          .where('hostId', '=', hostId)
          .where('sessionId', '=', sessionId)
          .execute(),
      );
    },
    connectedElsewhere: (namespaceId, own, options) =>
      database.run((query) => connectedElsewhere(query, namespaceId, own, options)),
    async disconnectEnded(now) {
      const { rowCount } = await database.sql(
        `update svc.host set session_id = null, connected_at = null, last_seen_at = coalesce(last_seen_at, $1), owner = null
         where session_id is not null and ${hasNoOwner('host.owner')}`,
        [now],
      );
      return rowCount ?? 0;
    },
  };
}

/**
 * Records the session of a host. If the host was connected to another member, notifies that member through the feed and
 * returns true.
 */
async function connect(
  query: Transaction<Tables>,
  feed: PostgresFeed,
  session: { hostId: string; sessionId: string; now: number; owner: number | null },
): Promise<boolean> {
  const { hostId, sessionId, now, owner } = session;
  const former = await query
    .selectFrom('host')
    .select('owner')
    .where('hostId', '=', hostId)
    .forUpdate()
    .executeTakeFirst();
  await query
    .updateTable('host')
    .set({ sessionId, connectedAt: now, lastSeenAt: now, owner })
    .where('hostId', '=', hostId)
    .execute();
  const isElsewhere = former !== undefined && former.owner !== null && former.owner !== owner;
  if (isElsewhere) await feed.add(query, 'hosts', hostId);
  return isElsewhere;
}

async function connectedElsewhere(
  query: Query,
  namespaceId: string,
  own: number,
  { limit, hostId }: Parameters<HostStore['connectedElsewhere']>[2],
): ReturnType<HostStore['connectedElsewhere']> {
  const connected = query
    .selectFrom('host')
    .select(['hostId', 'capabilities', 'labels', 'owner'])
    .$narrowType<{ owner: NotNull }>()
    .where('namespaceId', '=', namespaceId)
    .where('sessionId', 'is not', null)
    .where('revokedAt', 'is', null)
    .where('owner', '<>', own)
    .limit(limit);
  const rows = await (hostId === undefined
    ? connected.orderBy('hostId')
    : connected.where('hostId', '=', hostId)
  ).execute();
  return rows.map(({ capabilities, labels, ...row }) => ({
    ...row,
    capabilities: JSON.parse(capabilities),
    labels: JSON.parse(labels),
  }));
}

type Row = Selectable<Tables['host']>;

function rowOf({ capabilities, labels, metadata, ...host }: HostRecord): Row {
  return {
    ...host,
    capabilities: JSON.stringify(capabilities),
    labels: JSON.stringify(labels),
    metadata: JSON.stringify(metadata),
    owner: null,
  };
}

function recordOf({ capabilities, labels, metadata, owner: _, ...row }: Row): HostRecord {
  return {
    ...row,
    capabilities: JSON.parse(capabilities),
    labels: JSON.parse(labels),
    metadata: JSON.parse(metadata),
  };
}
