import { sql } from 'kysely';
import type { Clock } from '../../../kit/time/clock.ts';
import type { RefreshTokenStore, RotationOutcome } from '../../ports/index.ts';
import type { PostgresDatabase, Query } from '../database.ts';
import { pruneExpired } from '../prune-expired.ts';

/** Token store. Spent tokens are kept until they expire, so that their reuse is detected. */
export function postgresRefreshTokens(database: PostgresDatabase, clock: Clock): RefreshTokenStore {
  return {
    async add(token) {
      await database.run((query) => query.insertInto('refreshToken').values(token).execute());
    },
    find: (tokenHash) => database.run((query) => find(query, tokenHash, clock.now())),
    rotate: (tokenHash, next, now, graceMs) =>
      database.transaction(async (query) => {
        await sql`select pg_advisory_xact_lock_shared(${clientLock(next.clientId)})`.execute(query);
        const outcome = await spend(query, tokenHash, now, graceMs);
        if (outcome === 'rotated' || outcome === 'repeated')
          await query.insertInto('refreshToken').values(next).execute();
        return outcome;
      }),
    revokeFamily: (familyId) =>
      database.transaction(async (query) => {
        const member = await query
          .selectFrom('refreshToken')
          .select('clientId')
          .where('familyId', '=', familyId)
          .executeTakeFirst();
        if (!member) return 0;
        await stopRotations(query, [member.clientId]);
        const deleted = await query
          .deleteFrom('refreshToken')
          .where('familyId', '=', familyId)
          .executeTakeFirst();
        return Number(deleted.numDeletedRows);
      }),
    revokeClient: (clientId) => database.transaction((query) => deleteTokensOf(query, [clientId])),
    prune: (expiredBefore, limit) => pruneExpired(database, 'refresh_token', expiredBefore, limit),
  };
}

/** Deletes the refresh tokens of clients, including tokens that a running rotation is about to add. */
export async function deleteTokensOf(query: Query, clientIds: readonly string[]): Promise<number> {
  if (clientIds.length === 0) return 0;
  await stopRotations(query, clientIds);
  const deleted = await query
    .deleteFrom('refreshToken')
    .where('clientId', 'in', clientIds)
    .executeTakeFirst();
  return Number(deleted.numDeletedRows);
}

/** Waits for running token rotations of these clients, and blocks new rotations until the transaction ends. */
async function stopRotations(query: Query, clientIds: readonly string[]): Promise<void> {
  // All transactions lock in the same order, which prevents deadlocks.
  for (const clientId of [...clientIds].sort())
    await sql`select pg_advisory_xact_lock(${clientLock(clientId)})`.execute(query);
}

/** Distinguishes the locks of token rotations from other advisory locks. */
const LOCK_SEED = 0x726f74;

const clientLock = (clientId: string) => sql`hashtextextended(${clientId}, ${sql.lit(LOCK_SEED)})`;

async function find(query: Query, tokenHash: string, now: number) {
  return query
    .selectFrom('refreshToken')
    .selectAll()
    .where('tokenHash', '=', tokenHash)
    .where('expiresAt', '>', now)
    .executeTakeFirst();
}

async function spend(
  query: Query,
  tokenHash: string,
  now: number,
  graceMs: number,
): Promise<RotationOutcome> {
  // The update locks the row, so that a concurrent second call sees that the token is already spent.
  const { numUpdatedRows } = await query
    .updateTable('refreshToken')
    .set({ spentAt: now })
    .where('tokenHash', '=', tokenHash)
    .where('spentAt', 'is', null)
    .where('expiresAt', '>', now)
    .executeTakeFirst();
  if (numUpdatedRows === 1n) return 'rotated';
  const spentAt = (await find(query, tokenHash, now))?.spentAt;
  if (spentAt === undefined || spentAt === null) return 'unknown';
  return now - spentAt < graceMs ? 'repeated' : 'reused';
}
