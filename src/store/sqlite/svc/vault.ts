import type {
  NewVaultVersion,
  SealedVaultVersion,
  VaultKey,
  VaultStore,
  VaultVersion,
} from '../../ports/index.ts';
import type { Database } from '../database.ts';

export const VAULT = `
  create table secret (
    namespace_id text not null,
    name text not null,
    version integer not null,
    sealed text,
    created_at integer not null,
    created_by text not null,
    expires_at integer,
    last_used_at integer,
    primary key (namespace_id, name, version)
  ) strict, without rowid;
  create index secret_expiry on secret (expires_at) where sealed is not null and expires_at is not null;`;

/** Secrets of tenants. Only the newest version of a secret has a value. @spec docs/secrets.md */
export function sqliteVault(db: Database): VaultStore {
  const sql = statements(db);
  const add = (next: NewVaultVersion, keep: number): boolean => {
    if (sql.insert.run(next).changes === 0) return false;
    const { namespaceId, name, version } = next;
    sql.wipe.run({ namespaceId, name, version });
    sql.prune.run({ namespaceId, name, version: version - keep });
    return true;
  };
  return {
    add: (next, keep) => db.write(() => add(next, keep)),
    find: (key) => db.read(() => sql.find.get(keyOf(key))),
    list: (namespaceId) => db.read(() => sql.list.all({ namespaceId })),
    revoke: (key) => db.write(() => sql.revoke.run(keyOf(key)).changes > 0),
    used: (key, at) => db.write(() => void sql.used.run({ ...keyOf(key), version: key.version, at })),
    expiring: (before, limit, namespaceId) =>
      db.read(() => sql.expiring.all({ before, limit, namespaceId: namespaceId ?? null })),
  };
}

/** Returns only the key fields, because callers can pass objects with more fields. */
function keyOf({ namespaceId, name }: VaultKey): VaultKey {
  return { namespaceId, name };
}

function statements(db: Database) {
  const columns = `namespace_id as namespaceId, name, version, created_at as createdAt, created_by as createdBy,
    expires_at as expiresAt, last_used_at as lastUsedAt`;
  const isKey = 'namespace_id = :namespaceId and name = :name';
  type Versioned = VaultKey & { version: number };
  return {
    insert: db.prepare<[NewVaultVersion]>(`
      insert or ignore into secret (namespace_id, name, version, sealed, created_at, created_by, expires_at)
      values (:namespaceId, :name, :version, :sealed, :createdAt, :createdBy, :expiresAt)`),
    wipe: db.prepare<[Versioned]>(
      `update secret set sealed = null where ${isKey} and version < :version and sealed is not null`,
    ),
    prune: db.prepare<[Versioned]>(`delete from secret where ${isKey} and version <= :version`),
    find: db.prepare<[VaultKey], SealedVaultVersion>(
      `select ${columns}, sealed from secret where ${isKey} and sealed is not null order by version desc limit 1`,
    ),
    list: db.prepare<[{ namespaceId: string }], VaultVersion>(
      `select ${columns} from secret where namespace_id = :namespaceId order by name, version desc`,
    ),
    revoke: db.prepare<[VaultKey]>(`delete from secret where ${isKey}`),
    used: db.prepare<[Versioned & { at: number }]>(
      `update secret set last_used_at = max(coalesce(last_used_at, 0), :at) where ${isKey} and version = :version`,
    ),
    expiring: db.prepare<[{ before: number; limit: number; namespaceId: string | null }], VaultVersion>(`
      select ${columns} from secret where sealed is not null and expires_at is not null and expires_at < :before
        and (:namespaceId is null or namespace_id = :namespaceId)
      order by expires_at, namespace_id, name limit :limit`),
  };
}
