import type { PostgresDatabase } from './database.ts';

/** Deletes at most `limit` rows that expired until `before`. Rows that another process has locked are skipped. */
export async function pruneExpired(
  database: PostgresDatabase,
  table: 'refresh_token' | 'minted_token' | 'revocation',
  before: number,
  limit: number | undefined,
): Promise<number> {
  const { rowCount } = await database.sql(
    `delete from svc.${table} where ctid = any(array(
       select ctid from svc.${table} where expires_at <= $1 order by expires_at limit $2 for update skip locked))`,
    [before, limit ?? null],
  );
  return rowCount ?? 0;
}
