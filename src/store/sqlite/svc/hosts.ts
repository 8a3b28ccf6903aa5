import { PlatformError } from '../../../kit/errors/errors.ts';
import type { ClientRecord, ConnectedHost, HostRecord, HostStore } from '../../ports/index.ts';
import type { Database } from '../database.ts';
import { AFTER_ALL_TEXT } from '../key-range.ts';
import { UNENDED_FENCES } from '../members.ts';
import { isUniqueViolation } from '../store-error.ts';
import { INSERT_CLIENT } from './clients.ts';
import type { AddToFeed } from './feed.ts';

export function sqliteHosts(db: Database, addToFeed: AddToFeed): HostStore {
  const sql = statements(db);
  return {
    async register(host, client) {
      try {
        await db.write(() => {
          sql.createClient.run(client);
          sql.create.run(rowOf(host));
        });
      } catch (error) {
        if (!isUniqueViolation(error)) throw error;
        throw new PlatformError('CONFLICT', `There is already a host '${host.hostId}'.`, { cause: error });
      }
    },
    async find(hostId) {
      const row = await db.read(() => sql.find.get({ hostId }));
      return row && recordOf(row);
    },
    async list(namespaceId, { limit, after }) {
      const range = { namespaceId: namespaceId ?? null, after: after ?? '', until: AFTER_ALL_TEXT, limit };
      const rows = await db.read(() => sql.list.all(range));
      return rows.map(recordOf);
    },
    async connect(hostId, sessionId, now, owner) {
      return db.write(() => {
        const former = sql.ownerOf.get({ hostId }) ?? null;
        sql.connect.run({ hostId, sessionId, now, owner: owner ?? null });
        const isElsewhere = former !== null && former !== owner;
        if (isElsewhere) addToFeed('hosts', hostId);
        return isElsewhere;
      });
    },
    seen: (hostId, sessionId, now) => db.write(() => sql.seen.run({ hostId, sessionId, now }).changes === 1),
    async disconnect(hostId, sessionId, now) {
      await db.write(() => sql.disconnect.run({ hostId, sessionId, now }));
    },
    async connectedElsewhere(namespaceId, own, { limit, hostId }) {
      const rows = await db.read(() =>
        hostId === undefined
          ? sql.connectedElsewhere.all({ namespaceId, own, limit })
          : sql.oneElsewhere.all({ namespaceId, own, limit, hostId }),
      );
      return rows.map(({ capabilities, labels, ...row }) => ({
        ...row,
        capabilities: JSON.parse(capabilities),
        labels: JSON.parse(labels),
      }));
    },
    disconnectEnded: (now) => db.write(() => sql.disconnectEnded.run({ now }).changes),
  };
}

type Row = Omit<HostRecord, 'capabilities' | 'labels' | 'metadata'> & {
  capabilities: string;
  labels: string;
  metadata: string;
};

type ConnectedRow = Pick<Row, 'hostId' | 'capabilities' | 'labels'> & Pick<ConnectedHost, 'owner'>;

interface Elsewhere {
  namespaceId: string;
  own: number;
  limit: number;
}

interface SessionChange {
  hostId: string;
  sessionId: string;
  now: number;
}

function statements(db: Database) {
  const columns = `host_id as hostId, client_id as clientId, namespace_id as namespaceId, name, public_key as publicKey,
    capabilities, labels, metadata, created_at as createdAt, revoked_at as revokedAt, session_id as sessionId,
    connected_at as connectedAt, last_seen_at as lastSeenAt`;
  const elsewhere = `select host_id as hostId, capabilities, labels, owner from host
    where namespace_id = :namespaceId and session_id is not null and revoked_at is null and owner <> :own`;
  return {
    createClient: db.prepare<[ClientRecord]>(INSERT_CLIENT),
    create: db.prepare<[Row]>(`
      insert into host (host_id, client_id, namespace_id, name, public_key, capabilities, labels, metadata, created_at,
        revoked_at, session_id, connected_at, last_seen_at)
      values (:hostId, :clientId, :namespaceId, :name, :publicKey, :capabilities, :labels, :metadata, :createdAt,
        :revokedAt, :sessionId, :connectedAt, :lastSeenAt)`),
    find: db.prepare<[{ hostId: string }], Row>(`select ${columns} from host where host_id = :hostId`),
    list: db.prepare<[{ namespaceId: string | null; after: string; until: Buffer; limit: number }], Row>(`
      select ${columns} from host
      where host_id > :after and host_id < :until and (:namespaceId is null or namespace_id = :namespaceId)
      order by host_id limit :limit`),
    ownerOf: db
      .prepare<[{ hostId: string }], number | null>('select owner from host where host_id = :hostId')
      .pluck(),
    connect: db.prepare<[SessionChange & { owner: number | null }]>(`
      update host set session_id = :sessionId, connected_at = :now, last_seen_at = :now, owner = :owner
      where host_id = :hostId`),
    seen: db.prepare<[SessionChange]>(`
      update host set last_seen_at = :now where host_id = :hostId and session_id = :sessionId`),
    disconnect: db.prepare<[SessionChange]>(`
      update host set session_id = null, connected_at = null, last_seen_at = :now, owner = null
      where host_id = :hostId and session_id = :sessionId`),
    connectedElsewhere: db.prepare<[Elsewhere], ConnectedRow>(`
      ${elsewhere} order by host_id limit :limit`),
    oneElsewhere: db.prepare<[Elsewhere & { hostId: string }], ConnectedRow>(`
      ${elsewhere} and host_id = :hostId limit :limit`),
    disconnectEnded: db.prepare<[{ now: number }]>(`
      update host set session_id = null, connected_at = null, last_seen_at = coalesce(last_seen_at, :now), owner = null
      where session_id is not null and (owner is null or owner not in (${UNENDED_FENCES}))`),
  };
}

function rowOf(host: HostRecord): Row {
  const { capabilities, labels, metadata } = host;
  return {
    ...host,
    capabilities: JSON.stringify(capabilities),
    labels: JSON.stringify(labels),
    metadata: JSON.stringify(metadata),
  };
}

function recordOf(row: Row): HostRecord {
  const { capabilities, labels, metadata } = row;
  return {
    ...row,
    capabilities: JSON.parse(capabilities),
    labels: JSON.parse(labels),
    metadata: JSON.parse(metadata),
  };
}
