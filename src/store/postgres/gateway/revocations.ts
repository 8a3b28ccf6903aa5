import { sql } from 'kysely';
import type { MintedTokenStore, Revocation, RevocationStore } from '../../ports/index.ts';
import type { PostgresDatabase, Query } from '../database.ts';
import { pruneExpired } from '../prune-expired.ts';
import type { PostgresFeed } from './feed.ts';
import { deleteTokensOf } from './refresh-tokens.ts';

export function postgresRevocations(database: PostgresDatabase, feed: PostgresFeed): RevocationStore {
  return {
    revokeHost: (hostId, now) =>
      database.transaction(async (query) => {
        const isNew = await add(query, { kind: 'host', subject: hostId, expiresAt: null });
        if (isNew) await feed.add(query, 'revocations', hostId);
        await query
          .updateTable('host')
          .set({ revokedAt: now })
          .where('hostId', '=', hostId)
          .where('revokedAt', 'is', null)
          .execute();
        const clients = await query
          .selectFrom('client')
          .select('clientId')
          .where('hostId', '=', hostId)
          .execute();
        await deleteTokensOf(
          query,
          clients.map(({ clientId }) => clientId),
        );
        await query
          .updateTable('client')
          .set({ revokedAt: now })
          .where('hostId', '=', hostId)
          .where('revokedAt', 'is', null)
          .execute();
        return isNew;
      }),
    revokeToken: (jti, expiresAt, now) =>
      database.transaction(async (query) => {
        const isNew = await add(query, { kind: 'token', subject: jti, expiresAt });
        if (isNew) await feed.add(query, 'revocations', jti);
        await query
          .updateTable('mintedToken')
          .set({ revokedAt: now })
          .where('jti', '=', jti)
          .where('revokedAt', 'is', null)
          .execute();
        return isNew;
      }),
    since: (sequence, limit) =>
      database.run((query) =>
        query
          .selectFrom('revocation')
          .selectAll()
          .where('sequence', '>', sequence)
          .orderBy('sequence')
          .limit(limit)
          .execute(),
      ),
    find: (subjects) =>
      database.run((query) =>
        query
          .selectFrom('revocation')
          .selectAll()
          .where('subject', '=', sql<string>`any(${subjects})`)
          .orderBy('sequence')
          .execute(),
      ),
    prune: (expiredBefore, limit) => pruneExpired(database, 'revocation', expiredBefore, limit),
  };
}

async function add(query: Query, revocation: Omit<Revocation, 'sequence'>): Promise<boolean> {
  const { numInsertedOrUpdatedRows } = await query
    .insertInto('revocation')
    .values(revocation)
    .onConflict((conflict) => conflict.doNothing())
    .executeTakeFirst();
  return numInsertedOrUpdatedRows === 1n;
}

/** Store of manually issued tokens. Rows do not contain the tokens themselves. */
export function postgresMintedTokens(database: PostgresDatabase): MintedTokenStore {
  return {
    async add(token) {
      await database.run((query) => query.insertInto('mintedToken').values(token).execute());
    },
    find: (jti) =>
      database.run((query) =>
        query.selectFrom('mintedToken').selectAll().where('jti', '=', jti).executeTakeFirst(),
      ),
    list: (namespaceId, { now, limit, before }) =>
      database.run((query) => {
        let page = query.selectFrom('mintedToken').selectAll().where('expiresAt', '>', now);
        if (before !== undefined) page = page.where('jti', '<', before);
        if (namespaceId !== undefined) page = page.where('namespaceId', '=', namespaceId);
        return page.orderBy('jti', 'desc').limit(limit).execute();
      }),
    prune: (expiredBefore, limit) => pruneExpired(database, 'minted_token', expiredBefore, limit),
  };
}
