import type { Clock } from '../../../kit/time/clock.ts';
import type { RefreshTokenRecord, RefreshTokenStore, RotationOutcome } from '../../ports/index.ts';
import type { Database } from '../database.ts';

/** Store of refresh tokens. Used tokens are kept until they expire, so that their reuse is detected. */
export function sqliteRefreshTokens(db: Database, clock: Clock): RefreshTokenStore {
  const sql = statements(db);

  function spend(tokenHash: string, now: number, graceMs: number): RotationOutcome {
    if (sql.spend.run({ tokenHash, now }).changes === 1) return 'rotated';
    const spentAt = sql.find.get({ tokenHash, now })?.spentAt;
    if (spentAt === undefined || spentAt === null) return 'unknown';
    return now - spentAt < graceMs ? 'repeated' : 'reused';
  }
  return {
    async add(token) {
      await db.write(() => sql.add.run(token));
    },
    find: (tokenHash) => db.read(() => sql.find.get({ tokenHash, now: clock.now() })),
    rotate: (tokenHash, next, now, graceMs) =>
      db.write(() => {
        const outcome = spend(tokenHash, now, graceMs);
        if (outcome === 'rotated' || outcome === 'repeated') sql.add.run(next);
        return outcome;
      }),
    revokeFamily: (familyId) => db.write(() => sql.revokeFamily.run({ familyId }).changes),
    revokeClient: (clientId) => db.write(() => sql.revokeClient.run({ clientId }).changes),
    prune: (expiredBefore, limit = -1) => db.write(() => sql.prune.run({ expiredBefore, limit }).changes),
  };
}

function statements(db: Database) {
  return {
    add: db.prepare<[RefreshTokenRecord]>(`
      insert into refresh_token (token_hash, family_id, client_id, created_at, expires_at, spent_at)
      values (:tokenHash, :familyId, :clientId, :createdAt, :expiresAt, :spentAt)`),
    find: db.prepare<[{ tokenHash: string; now: number }], RefreshTokenRecord>(`
      select token_hash as tokenHash, family_id as familyId, client_id as clientId, created_at as createdAt,
        expires_at as expiresAt, spent_at as spentAt
      from refresh_token where token_hash = :tokenHash and expires_at > :now`),
    spend: db.prepare<[{ tokenHash: string; now: number }]>(`
      update refresh_token set spent_at = :now where token_hash = :tokenHash and spent_at is null and expires_at > :now`),
    revokeFamily: db.prepare<[{ familyId: string }]>('delete from refresh_token where family_id = :familyId'),
    revokeClient: db.prepare<[{ clientId: string }]>('delete from refresh_token where client_id = :clientId'),
    prune: db.prepare<[{ expiredBefore: number; limit: number }]>(`
      delete from refresh_token where token_hash in (
        select token_hash from refresh_token where expires_at <= :expiredBefore limit :limit)`),
  };
}
