import type { Sql } from './named-sql.ts';

/** Takes the advisory lock with this name until the transaction ends, unless another transaction holds the lock. */
export async function tryLockName(sql: Sql, name: string): Promise<boolean> {
  const [row] = await sql<{ isHeld: boolean }>(
    'select pg_try_advisory_xact_lock(hashtextextended(:name, 0)) as "isHeld"',
    { name },
  );
  return row!.isHeld;
}

/** Waits for the advisory lock with this name, and holds the lock until the transaction ends. */
export async function lockName(sql: Sql, name: string): Promise<void> {
  await sql('select pg_advisory_xact_lock(hashtextextended(:name, 0))', { name });
}
