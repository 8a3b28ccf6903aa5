import type { MintedTokenRecord, MintedTokenStore } from '../../ports/index.ts';
import type { Database } from '../database.ts';
import { AFTER_ALL_TEXT } from '../key-range.ts';

/** Store of manually issued tokens. Rows do not contain the tokens themselves. */
export function sqliteMintedTokens(db: Database): MintedTokenStore {
  const columns = `jti, host_id as hostId, namespace_id as namespaceId, created_by as createdBy, created_at as createdAt,
    expires_at as expiresAt, revoked_at as revokedAt`;
  const add = db.prepare<[MintedTokenRecord]>(`
    insert into minted_token (jti, host_id, namespace_id, created_by, created_at, expires_at, revoked_at)
    values (:jti, :hostId, :namespaceId, :createdBy, :createdAt, :expiresAt, :revokedAt)`);
  const find = db.prepare<[{ jti: string }], MintedTokenRecord>(
    `select ${columns} from minted_token where jti = :jti`,
  );
  const list = db.prepare<
    [{ namespaceId: string | null; now: number; before: string | Buffer; limit: number }],
    MintedTokenRecord
  >(`
    select ${columns} from minted_token
    where jti < :before and expires_at > :now and (:namespaceId is null or namespace_id = :namespaceId)
    order by jti desc limit :limit`);
  const prune = db.prepare<[{ expiredBefore: number; limit: number }]>(`
    delete from minted_token where jti in (
      select jti from minted_token where expires_at <= :expiredBefore limit :limit)`);
  return {
    async add(token) {
      await db.write(() => add.run(token));
    },
    find: (jti) => db.read(() => find.get({ jti })),
    list: (namespaceId, { now, limit, before }) =>
      db.read(() =>
        list.all({ namespaceId: namespaceId ?? null, now, before: before ?? AFTER_ALL_TEXT, limit }),
      ),
    prune: (expiredBefore, limit = -1) => db.write(() => prune.run({ expiredBefore, limit }).changes),
  };
}
