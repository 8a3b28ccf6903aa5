import { PlatformError } from '../../../kit/errors/errors.ts';
import type { ClientRecord, ClientStore } from '../../ports/index.ts';
import type { Database } from '../database.ts';
import { isUniqueViolation } from '../store-error.ts';

export const INSERT_CLIENT = `insert into client (client_id, host_id, namespace_id, name, secret_hash, created_at, revoked_at)
  values (:clientId, :hostId, :namespaceId, :name, :secretHash, :createdAt, :revokedAt)`;

/** Client store. @spec Client credentials and token pair */
export function sqliteClients(db: Database): ClientStore {
  const sql = statements(db);
  return {
    async create(client) {
      try {
        await db.write(() => sql.create.run(client));
      } catch (error) {
        if (!isUniqueViolation(error)) throw error;
        throw new PlatformError('CONFLICT', `There is already a client '${client.clientId}'.`, {
          cause: error,
        });
      }
    },
    async upsert(client) {
      await db.write(() => sql.upsert.run(client));
    },
    find: (clientId) => db.read(() => sql.find.get({ clientId })),
    list: (namespaceId) => db.read(() => sql.list.all({ namespaceId: namespaceId ?? null })),
    async rehash(clientId, from, to) {
      await db.write(() => sql.rehash.run({ clientId, from, to }));
    },
    revoke: (clientId, now) => db.write(() => sql.revoke.run({ clientId, now }).changes === 1),
  };
}

function statements(db: Database) {
  const columns = `client_id as clientId, host_id as hostId, namespace_id as namespaceId, name, secret_hash as secretHash,
    created_at as createdAt, revoked_at as revokedAt`;
  return {
    create: db.prepare<[ClientRecord]>(INSERT_CLIENT),
    upsert: db.prepare<[ClientRecord]>(`${INSERT_CLIENT}
      on conflict (client_id) do update set
        host_id = excluded.host_id, namespace_id = excluded.namespace_id, name = excluded.name,
        secret_hash = excluded.secret_hash, revoked_at = excluded.revoked_at`),
    find: db.prepare<[{ clientId: string }], ClientRecord>(
      `select ${columns} from client where client_id = :clientId`,
    ),
    list: db.prepare<[{ namespaceId: string | null }], ClientRecord>(`
      select ${columns} from client where :namespaceId is null or namespace_id = :namespaceId order by created_at, client_id`),
    rehash: db.prepare<[{ clientId: string; from: string; to: string }]>(`
      update client set secret_hash = :to where client_id = :clientId and secret_hash = :from`),
    revoke: db.prepare<[{ clientId: string; now: number }]>(`
      update client set revoked_at = :now where client_id = :clientId and revoked_at is null`),
  };
}
