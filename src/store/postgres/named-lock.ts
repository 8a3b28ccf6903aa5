import type { Sql } from './named-sql.ts';

/** Waits for the advisory lock with this name, and holds the lock until the transaction ends. */
export async function lockName(sql: Sql, name: string): Promise<void> {
  await sql('select pg_advisory_xact_lock(hashtextextended(:name, 0))', { name });
}
