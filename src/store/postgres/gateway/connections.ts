import type { Clock } from '../../../kit/time/clock.ts';
import type {
  ConnectionId,
  ConnectionKey,
  ConnectionRecord,
  ConnectionStore,
  LeasedConnection,
} from '../../ports/index.ts';
import type { PostgresDatabase } from '../database.ts';
import { NOW } from '../database-clock.ts';

export const CONNECTIONS = `
  create table svc.connection (
    namespace_id text collate "C" not null,
    name text collate "C" not null,
    id text not null,
    settings text not null,
    sealed_secret text,
    sealed_tokens text,
    status text not null,
    granted_scopes text,
    account text,
    created_at bigint not null,
    authorized_at bigint,
    expires_at bigint,
    refresh_at bigint,
    last_refreshed_at bigint,
    last_error text,
    failures integer not null,
    lease text,
    lease_until bigint,
    primary key (namespace_id, name)
  );
  create index connection_due on svc.connection (refresh_at) where refresh_at is not null;`;

const COLUMNS = `namespace_id as "namespaceId", name, id, settings, sealed_secret as "sealedSecret",
  sealed_tokens as "sealedTokens", status, granted_scopes as "grantedScopes", account, created_at as "createdAt",
  authorized_at as "authorizedAt", expires_at as "expiresAt", refresh_at as "refreshAt",
  last_refreshed_at as "lastRefreshedAt", last_error as "lastError", failures`;
const SAME = 'namespace_id = :namespaceId and name = :name and id = :id';

const CREATE = `
  insert into svc.connection (namespace_id, name, id, settings, sealed_secret, sealed_tokens, status, granted_scopes,
    account, created_at, authorized_at, expires_at, refresh_at, last_refreshed_at, last_error, failures)
  values (:namespaceId, :name, :id, :settings, :sealedSecret, :sealedTokens, :status, :grantedScopes,
    :account, :createdAt, :authorizedAt, :expiresAt, :refreshAt, :lastRefreshedAt, :lastError, :failures)
  on conflict do nothing returning name`;

/** The row lock makes concurrent callers wait, and check the lease again when they have it. */
const LEASE = `
  with found as (
    select ${COLUMNS}, lease_until is not null as "wasInterrupted" from svc.connection
    where ${SAME} and (lease_until is null or lease_until <= ${NOW}) for update)
  update svc.connection set lease = :lease, lease_until = ${NOW} + :leaseMs
  from found where svc.connection.namespace_id = found."namespaceId" and svc.connection.name = found.name
  returning found.*`;

const SETTLE = `
  update svc.connection set status = :status, sealed_tokens = :sealedTokens, granted_scopes = :grantedScopes,
    account = :account, authorized_at = :authorizedAt, expires_at = :expiresAt, refresh_at = :refreshAt,
    last_refreshed_at = :lastRefreshedAt, last_error = :lastError, failures = :failures,
    lease = null, lease_until = null
  where ${SAME} and (:lease::text is null or lease = :lease::text)
  returning name`;

const CONFIGURE = `
  update svc.connection set settings = :settings, sealed_secret = :sealedSecret
  where ${SAME} and settings = :fromSettings and sealed_secret is not distinct from :fromSealedSecret::text
  returning name`;

const idOf = ({ namespaceId, name, id }: ConnectionId): ConnectionId => ({ namespaceId, name, id });

/** OAuth 2 connections. @spec docs/connections.md */
export function postgresConnections(
  database: PostgresDatabase,
  leaseClock: Clock | undefined,
): ConnectionStore {
  const now = (): number | null => leaseClock?.now() ?? null;
  const wrote = (text: string, values: object): Promise<boolean> =>
    database.write(async (sql) => (await sql(text, values)).length === 1);
  return {
    create: (record) => wrote(CREATE, record),
    async find({ namespaceId, name }: ConnectionKey) {
      const [found] = await database.read((sql) =>
        sql<ConnectionRecord>(
          `select ${COLUMNS} from svc.connection where namespace_id = :namespaceId and name = :name`,
          { namespaceId, name },
        ),
      );
      return found;
    },
    configure: (id, { settings, sealedSecret }, from) =>
      wrote(CONFIGURE, {
        ...{ ...idOf(id), settings, sealedSecret },
        ...{ fromSettings: from.settings, fromSealedSecret: from.sealedSecret },
      }),
    list: (namespaceId) =>
      database.read((sql) =>
        sql<ConnectionRecord>(
          `select ${COLUMNS} from svc.connection where namespace_id = :namespaceId order by name`,
          { namespaceId },
        ),
      ),
    troubled: (expiresBefore) =>
      database.read((sql) =>
        sql<ConnectionRecord>(
          `select ${COLUMNS} from svc.connection where (namespace_id, name) in (
             select namespace_id, name from svc.connection where status = 'failed'
             union all
             select namespace_id, name from svc.connection where status = 'active' and expires_at < :expiresBefore)
           order by namespace_id, name`,
          { expiresBefore },
        ),
      ),
    due: (before, limit) =>
      database.read((sql) =>
        sql<ConnectionId>(
          `select namespace_id as "namespaceId", name, id from svc.connection
           where refresh_at is not null and refresh_at <= :before and (lease_until is null or lease_until <= ${NOW})
           order by refresh_at limit :limit`,
          { before, limit, now: now() },
        ),
      ),
    async lease(id, lease, leaseMs) {
      const values = { ...idOf(id), lease, leaseMs, now: now() };
      const [leased] = await database.write((sql) => sql<LeasedConnection>(LEASE, values));
      return leased;
    },
    settle: (id, state, lease) => wrote(SETTLE, { ...state, ...idOf(id), lease: lease ?? null }),
    noteRefusal: (id, lastError) =>
      wrote(
        `update svc.connection set last_error = :lastError,
           status = case when sealed_tokens is null and status <> 'revoked' then 'failed' else status end
         where ${SAME} returning name`,
        { ...id, lastError },
      ),
    remove: (id) => wrote(`delete from svc.connection where ${SAME} returning name`, id),
  };
}
