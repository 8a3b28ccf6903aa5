import type { Sql } from './named-sql.ts';

/** Holds a lock with this name until the transaction ends. */
export async function lockName(sql: Sql, name: string): Promise<void> {
  await sql('select pg_advisory_xact_lock(hashtextextended(:name, 0))', { name });
}
