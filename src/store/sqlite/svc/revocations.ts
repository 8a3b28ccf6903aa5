import type { Revocation, RevocationStore } from '../../ports/index.ts';
import type { Database } from '../database.ts';
import type { AddToFeed } from './feed.ts';

/** Store of revocations. Readers use the row number as a cursor. */
export function sqliteRevocations(db: Database, addToFeed: AddToFeed): RevocationStore {
  const sql = statements(db);
  return {
    revokeHost: (hostId, now) =>
      db.write(() => {
        const fresh = sql.add.run({ kind: 'host', subject: hostId, expiresAt: null }).changes === 1;
        if (fresh) addToFeed('revocations', hostId);
        sql.revokeHost.run({ hostId, now });
        sql.dropRefreshTokens.run({ hostId });
        sql.revokeClients.run({ hostId, now });
        return fresh;
      }),
    revokeToken: (jti, expiresAt, now) =>
      db.write(() => {
        const fresh = sql.add.run({ kind: 'token', subject: jti, expiresAt }).changes === 1;
        if (fresh) addToFeed('revocations', jti);
        sql.revokeMinted.run({ jti, now });
        return fresh;
      }),
    since: (sequence, limit) => db.read(() => sql.since.all({ sequence, limit })),
    find: (subjects) => db.read(() => sql.find.all({ subjects: JSON.stringify(subjects) })),
    prune: (expiredBefore, limit = -1) => db.write(() => sql.prune.run({ expiredBefore, limit }).changes),
  };
}

function statements(db: Database) {
  return {
    add: db.prepare<[Omit<Revocation, 'sequence'>]>(`
      insert into revocation (kind, subject, expires_at) values (:kind, :subject, :expiresAt) on conflict do nothing`),
    revokeHost: db.prepare<[{ hostId: string; now: number }]>(`
      update host set revoked_at = :now where host_id = :hostId and revoked_at is null`),
    revokeClients: db.prepare<[{ hostId: string; now: number }]>(`
      update client set revoked_at = :now where host_id = :hostId and revoked_at is null`),
    dropRefreshTokens: db.prepare<[{ hostId: string }]>(`
      delete from refresh_token where client_id in (select client_id from client where host_id = :hostId)`),
    revokeMinted: db.prepare<[{ jti: string; now: number }]>(`
      update minted_token set revoked_at = :now where jti = :jti and revoked_at is null`),
    since: db.prepare<[{ sequence: number; limit: number }], Revocation>(`
      select sequence, kind, subject, expires_at as expiresAt from revocation
      where sequence > :sequence order by sequence limit :limit`),
    find: db.prepare<[{ subjects: string }], Revocation>(`
      select sequence, kind, subject, expires_at as expiresAt from revocation
      where kind in ('host', 'token') and subject in (select value from json_each(:subjects)) order by sequence`),
    prune: db.prepare<[{ expiredBefore: number; limit: number }]>(`
      delete from revocation where sequence in (
        select sequence from revocation where expires_at <= :expiredBefore limit :limit)`),
  };
}
