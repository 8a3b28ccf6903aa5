import type pg from 'pg';
import { codeOf } from '../../kit/errors/errors.ts';

/** Index of a table in the schema `svc`. */
export interface ConcurrentIndex {
  name: string;
  table: string;
  /** SQL of the indexed columns and expressions. */
  columns: string;
  /** SQL condition of the indexed rows. Not for partitioned tables. */
  where?: string;
}

interface Options {
  /** Time limit for locks that keep writers waiting. */
  lockTimeoutMs: number;
}

const UNDEFINED_TABLE_CODE = '42P01';

/**
 * Creates an index while nodes read and write the table. Can be repeated after a failure. For a partitioned table,
 * creates the index of each partition. Must be called outside of a transaction.
 */
export async function createIndex(
  client: pg.PoolClient,
  index: ConcurrentIndex,
  { lockTimeoutMs }: Options,
): Promise<void> {
  const { rows } = await client.query<{ isPartitioned: boolean }>(
    `select relkind = 'p' as "isPartitioned" from pg_class where oid = $1::regclass`,
    [`svc.${index.table}`],
  );
  if (!rows[0]!.isPartitioned) return build(client, index);
  // Takes no time, because it builds nothing. Partitions that nodes add from now on have the index.
  await client.query(`set lock_timeout = ${lockTimeoutMs}`);
  await client.query(
    `create index if not exists ${index.name} on only svc.${index.table} (${index.columns})`,
  );
  for (const table of await partitionsWithout(client, index)) {
    try {
      await buildPart(client, index, { table, lockTimeoutMs });
    } catch (error) {
      // Retention can drop a partition at any time.
      if (codeOf(error) !== UNDEFINED_TABLE_CODE) throw error;
    }
  }
}

/**
 * Drops an index, if it exists, while nodes read and write the table. Not for partitioned tables. Must be called outside
 * of a transaction.
 */
export async function dropIndex(client: pg.PoolClient, name: string): Promise<void> {
  // Neither reads nor writes wait behind these locks.
  await client.query('set lock_timeout = 0');
  await client.query(`drop index concurrently if exists svc.${name}`);
}

async function buildPart(
  client: pg.PoolClient,
  index: ConcurrentIndex,
  { table, lockTimeoutMs }: Options & { table: string },
): Promise<void> {
  const name = index.name.replace(index.table, table);
  await build(client, { ...index, name, table });
  await client.query(`set lock_timeout = ${lockTimeoutMs}`);
  await client.query(`alter index svc.${index.name} attach partition svc.${name}`);
}

/** Waits for locks without a limit: neither reads nor writes wait behind these locks. */
async function build(client: pg.PoolClient, { name, table, columns, where }: ConcurrentIndex): Promise<void> {
  await client.query('set lock_timeout = 0');
  const { rowCount } = await client.query(
    'select from pg_index where indexrelid = to_regclass($1) and not indisvalid',
    [`svc.${name}`],
  );
  // A build that failed leaves an invalid index.
  if (rowCount) await dropIndex(client, name);
  const condition = where === undefined ? '' : ` where ${where}`;
  await client.query(
    `create index concurrently if not exists ${name} on svc.${table} (${columns})${condition}`,
  );
}

async function partitionsWithout(client: pg.PoolClient, { name, table }: ConcurrentIndex): Promise<string[]> {
  const { rows } = await client.query<{ partition: string }>(
    `select c.relname as partition from pg_inherits i join pg_class c on c.oid = i.inhrelid
     where i.inhparent = $1::regclass and not exists (
       select from pg_inherits part join pg_index on indexrelid = part.inhrelid
       where part.inhparent = $2::regclass and indrelid = c.oid)
     order by 1`,
    [`svc.${table}`, `svc.${name}`],
  );
  return rows.map(({ partition }) => partition);
}
