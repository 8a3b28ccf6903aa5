import type { Clock } from '../../../kit/time/clock.ts';
import type {
  ConnectionConfig,
  ConnectionId,
  ConnectionKey,
  ConnectionRecord,
  ConnectionState,
  ConnectionStore,
} from '../../ports/index.ts';
import type { Database } from '../database.ts';

export const CONNECTIONS = `
  create table connection (
    namespace_id text not null,
    name text not null,
    id text not null,
    settings text not null,
    sealed_secret text,
    sealed_tokens text,
    status text not null,
    granted_scopes text,
    account text,
    created_at integer not null,
    authorized_at integer,
    expires_at integer,
    refresh_at integer,
    last_refreshed_at integer,
    last_error text,
    failures integer not null,
    lease text,
    lease_until integer,
    primary key (namespace_id, name)
  ) strict, without rowid;
  create index connection_due on connection (refresh_at) where refresh_at is not null;`;

const COLUMNS = `namespace_id as namespaceId, name, id, settings, sealed_secret as sealedSecret, sealed_tokens as sealedTokens,
  status, granted_scopes as grantedScopes, account, created_at as createdAt, authorized_at as authorizedAt,
  expires_at as expiresAt, refresh_at as refreshAt, last_refreshed_at as lastRefreshedAt, last_error as lastError, failures`;
const SAME = 'namespace_id = :namespaceId and name = :name and id = :id';

/** OAuth 2 connections in `svc.db`. @spec docs/connections.md */
export function sqliteConnections(db: Database, clock: Clock): ConnectionStore {
  const sql = statements(db);
  return {
    create: (record) => db.write(() => sql.create.run(record).changes === 1),
    find: (key) => db.read(() => sql.find.get(keyOf(key))),
    configure: (id, { settings, sealedSecret }, from) =>
      db.write(() => {
        const former = { fromSettings: from.settings, fromSealedSecret: from.sealedSecret };
        return sql.configure.run({ ...idOf(id), settings, sealedSecret, ...former }).changes === 1;
      }),
    list: (namespaceId) => db.read(() => sql.list.all({ namespaceId })),
    troubled: (expiresBefore) => db.read(() => sql.troubled.all({ expiresBefore })),
    due: (now, limit) => db.read(() => sql.due.all({ now, limit })),
    lease: (id, lease, leaseMs) =>
      db.write(() => {
        const now = clock.now();
        const found = sql.leased.get(idOf(id));
        if (!found || (found.leaseUntil !== null && found.leaseUntil > now)) return undefined;
        sql.lease.run({ ...idOf(id), lease, leaseUntil: now + leaseMs });
        const { leaseUntil, ...record } = found;
        return { ...record, wasInterrupted: leaseUntil !== null };
      }),
    settle: (id, state, lease) =>
      db.write(() => sql.settle.run({ ...state, ...idOf(id), lease: lease ?? null }).changes === 1),
    noteRefusal: (id, lastError) =>
      db.write(() => sql.noteRefusal.run({ ...idOf(id), lastError }).changes === 1),
    remove: (id) => db.write(() => sql.remove.run(idOf(id)).changes === 1),
  };
}

const keyOf = ({ namespaceId, name }: ConnectionKey): ConnectionKey => ({ namespaceId, name });
const idOf = ({ namespaceId, name, id }: ConnectionId): ConnectionId => ({ namespaceId, name, id });

function statements(db: Database) {
  type Former = { fromSettings: string; fromSealedSecret: string | null };
  type Lease = { lease: string; leaseUntil: number };
  return {
    create: db.prepare<[ConnectionRecord]>(`
      insert into connection (namespace_id, name, id, settings, sealed_secret, sealed_tokens, status, granted_scopes,
        account, created_at, authorized_at, expires_at, refresh_at, last_refreshed_at, last_error, failures)
      values (:namespaceId, :name, :id, :settings, :sealedSecret, :sealedTokens, :status, :grantedScopes,
        :account, :createdAt, :authorizedAt, :expiresAt, :refreshAt, :lastRefreshedAt, :lastError, :failures)
      on conflict do nothing`),
    find: db.prepare<[ConnectionKey], ConnectionRecord>(
      `select ${COLUMNS} from connection where namespace_id = :namespaceId and name = :name`,
    ),
    configure: db.prepare<[ConnectionId & ConnectionConfig & Former]>(`
      update connection set settings = :settings, sealed_secret = :sealedSecret
      where ${SAME} and settings = :fromSettings and sealed_secret is :fromSealedSecret`),
    list: db.prepare<[{ namespaceId: string }], ConnectionRecord>(
      `select ${COLUMNS} from connection where namespace_id = :namespaceId order by name`,
    ),
    troubled: db.prepare<[{ expiresBefore: number }], ConnectionRecord>(`
      with troubled as materialized (
        select ${COLUMNS} from connection where status = 'failed'
        union all
        select ${COLUMNS} from connection where status = 'active' and expires_at < :expiresBefore
      )
      select * from troubled order by namespaceId, name`),
    due: db.prepare<[{ now: number; limit: number }], ConnectionId>(`
      select namespace_id as namespaceId, name, id from connection
      where refresh_at is not null and refresh_at <= :now and (lease_until is null or lease_until <= :now)
      order by refresh_at limit :limit`),
    leased: db.prepare<[ConnectionId], ConnectionRecord & { leaseUntil: number | null }>(
      `select ${COLUMNS}, lease_until as leaseUntil from connection where ${SAME}`,
    ),
    lease: db.prepare<[ConnectionId & Lease]>(
      `update connection set lease = :lease, lease_until = :leaseUntil where ${SAME}`,
    ),
    settle: db.prepare<[ConnectionId & ConnectionState & { lease: string | null }]>(`
      update connection set status = :status, sealed_tokens = :sealedTokens, granted_scopes = :grantedScopes,
        account = :account, authorized_at = :authorizedAt, expires_at = :expiresAt, refresh_at = :refreshAt,
        last_refreshed_at = :lastRefreshedAt, last_error = :lastError, failures = :failures,
        lease = null, lease_until = null
      where ${SAME} and (:lease is null or lease = :lease)`),
    noteRefusal: db.prepare<[ConnectionId & { lastError: string }]>(`
      update connection set last_error = :lastError,
        status = iif(sealed_tokens is null and status <> 'revoked', 'failed', status) where ${SAME}`),
    remove: db.prepare<[ConnectionId]>(`delete from connection where ${SAME}`),
  };
}
