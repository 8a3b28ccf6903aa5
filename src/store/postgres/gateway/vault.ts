import type { SealedVaultVersion, VaultKey, VaultStore, VaultVersion } from '../../ports/index.ts';
import type { PostgresDatabase } from '../database.ts';

export const VAULT = `
  create table svc.secret (
    namespace_id text collate "C" not null,
    name text collate "C" not null,
    version integer not null,
    sealed text,
    created_at bigint not null,
    created_by text not null,
    expires_at bigint,
    last_used_at bigint,
    primary key (namespace_id, name, version)
  );
  create index secret_expiry on svc.secret (expires_at) where sealed is not null and expires_at is not null;`;

const COLUMNS = `namespace_id as "namespaceId", name, version, created_at as "createdAt", created_by as "createdBy",
  expires_at as "expiresAt", last_used_at as "lastUsedAt"`;
const IS_KEY = 'namespace_id = :namespaceId and name = :name';

/** Secrets of tenants. Only the newest version of a secret has a value. @spec docs/secrets.md */
export function postgresVault(database: PostgresDatabase): VaultStore {
  return {
    add: (next, keep) =>
      database.transaction(async (query) => {
        const { namespaceId, name, version } = next;
        const { numInsertedOrUpdatedRows } = await query
          .insertInto('secret')
          .values({ ...next, lastUsedAt: null })
          .onConflict((conflict) => conflict.doNothing())
          .executeTakeFirst();
        if (numInsertedOrUpdatedRows !== 1n) return false;
        const ofName = { namespaceId, name };
        await query
          .updateTable('secret')
          .set({ sealed: null })
          .where((where) => where.and(ofName))
          .where('version', '<', version)
          .execute();
        await query
          .deleteFrom('secret')
          .where((where) => where.and(ofName))
          .where('version', '<=', version - keep)
          .execute();
        return true;
      }),
    async find(key) {
      const rows = await database.read((sql) =>
        sql<SealedVaultVersion>(
          `select ${COLUMNS}, sealed from svc.secret where ${IS_KEY} and sealed is not null order by version desc limit 1`,
          key,
        ),
      );
      return rows[0];
    },
    list: (namespaceId) =>
      database.read((sql) =>
        sql<VaultVersion>(
          `select ${COLUMNS} from svc.secret where namespace_id = :namespaceId order by name, version desc`,
          { namespaceId },
        ),
      ),
    revoke: (key) =>
      database.transaction(async (query) => {
        const { numDeletedRows } = await query
          .deleteFrom('secret')
          .where((where) => where.and(keyOf(key)))
          .executeTakeFirst();
        return numDeletedRows > 0n;
      }),
    async used(key, at) {
      await database.transact((sql) =>
        sql<object>(
          `update svc.secret set last_used_at = greatest(coalesce(last_used_at, 0), :at)
           where ${IS_KEY} and version = :version`,
          { ...key, at },
        ),
      );
    },
    expiring: (before, limit, namespaceId) =>
      database.read((sql) =>
        sql<VaultVersion>(
          `select ${COLUMNS} from svc.secret where sealed is not null and expires_at is not null and expires_at < :before
             and (:namespaceId::text is null or namespace_id = :namespaceId)
           order by expires_at, namespace_id, name limit :limit`,
          { before, limit, namespaceId: namespaceId ?? null },
        ),
      ),
  };
}

/** Returns only the key fields, because callers can pass objects with more fields. */
function keyOf({ namespaceId, name }: VaultKey): VaultKey {
  return { namespaceId, name };
}
