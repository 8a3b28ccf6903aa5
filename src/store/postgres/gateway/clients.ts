import { PlatformError } from '../../../kit/errors/errors.ts';
import type { ClientStore } from '../../ports/index.ts';
import type { PostgresDatabase } from '../database.ts';
import { isUniqueViolation } from '../postgres-error.ts';

/** Client store. @spec Client credentials and token pair */
export function postgresClients(database: PostgresDatabase): ClientStore {
  return {
    async create(client) {
      try {
        await database.run((query) => query.insertInto('client').values(client).execute());
      } catch (error) {
        if (!isUniqueViolation(error)) throw error;
        throw new PlatformError('CONFLICT', `There is already a client '${client.clientId}'.`, {
          cause: error,
        });
      }
    },
    async upsert(client) {
      const { clientId: _, createdAt: __, ...changed } = client;
      await database.run((query) =>
        query
          .insertInto('client')
          .values(client)
          .onConflict((conflict) => conflict.column('clientId').doUpdateSet(changed))
          .execute(),
      );
    },
    find: (clientId) =>
      database.run((query) =>
        query.selectFrom('client').selectAll().where('clientId', '=', clientId).executeTakeFirst(),
      ),
    list: (namespaceId) =>
      database.run((query) => {
        const all = query.selectFrom('client').selectAll().orderBy('createdAt').orderBy('clientId');
        return (namespaceId === undefined ? all : all.where('namespaceId', '=', namespaceId)).execute();
      }),
    async rehash(clientId, from, to) {
      await database.run((query) =>
        query
          .updateTable('client')
          .set({ secretHash: to })
          .where('clientId', '=', clientId)
          .where('secretHash', '=', from)
          .execute(),
      );
    },
    async revoke(clientId, now) {
      const { numUpdatedRows } = await database.run((query) =>
        query
          .updateTable('client')
          .set({ revokedAt: now })
          .where('clientId', '=', clientId)
          .where('revokedAt', 'is', null)
          .executeTakeFirst(),
      );
      return numUpdatedRows === 1n;
    },
  };
}
