import pg from 'pg';
import { PlatformError } from '../../kit/errors/errors.ts';
import { silentLogger } from '../../kit/telemetry/logger.ts';
import { IS_UNHANDLED, POSITIONS_PER_TRANSACTION } from '../postgres/gateway/inbox/schema.ts';
import { PostgresDatabase, readSchemaState, requireUsableSchema } from '../postgres/index.ts';
import { postgresError } from '../postgres/postgres-error.ts';
import { copyObjects } from './objects.ts';
import { copyPlugins, type PluginSource } from './plugins.ts';
import type { CopySource } from './source.ts';
import { type Column, columnsOf, insertRows } from './table-writer.ts';
import {
  OBJECT_TABLES,
  PLUGIN_TABLES,
  RECORD_TABLES,
  TABLE_COPIES,
  type TableCopy,
  VECTOR_TABLES,
} from './tables.ts';
import { copyRecords, createDays } from './telemetry.ts';
import { copyVectors } from './vectors.ts';

export interface StoreCopyOptions {
  source: CopySource;
  /** URL of a migrated, empty database, in the form `postgres://…`. */
  url: string;
  /** Time of the copy in epoch ms. Idempotency markers that expired before this time are not copied. */
  now: number;
  /** Installed plugins. By default, no plugins are copied. */
  plugins?: PluginSource | undefined;
  onTable?: (copied: CopiedTable) => void;
}

export interface CopiedTable {
  table: string;
  rows: number;
}

export interface StoreCopied {
  /** Host, port and database, without credentials. */
  server: string;
  tables: CopiedTable[];
}

/**
 * Copies all tables of a stopped platform into PostgreSQL in one transaction, so that an interrupted copy leaves no
 * rows. Throws CONFLICT if the target is not empty, and STORE_ERROR if PostgreSQL cannot be used.
 */
export async function copyStore(options: StoreCopyOptions): Promise<StoreCopied> {
  const { url } = options;
  const server = await requireMigrated(url);
  const client = new pg.Client({
    connectionString: url,
    application_name: 'svc-store-copy',
    keepAlive: true,
  });
  // The listener prevents an unhandled error event. The statement in progress also rejects with the error.
  client.on('error', () => {});
  try {
    await client.connect();
    await createDays(client, options);
    await client.query('begin');
    await requireEmpty(client, server);
    const tables = await copyTables(client, options);
    await continueNumbers(client, options.source);
    await client.query('commit');
    return { server, tables };
  } catch (error) {
    throw postgresError(server, error);
  } finally {
    // Closing the connection also rolls back an uncommitted transaction.
    await client.end().catch(() => {});
  }
}

async function requireMigrated(url: string): Promise<string> {
  const database = new PostgresDatabase({ url, logger: silentLogger, applicationName: 'svc-store-copy' });
  try {
    requireUsableSchema(await readSchemaState(database), database.server);
    return database.server;
  } finally {
    await database.close();
  }
}

/** Locks all tables until the end of the transaction, so that no service can write. Throws if a table has rows. */
async function requireEmpty(client: pg.Client, server: string): Promise<void> {
  const tables = [
    ...TABLE_COPIES.map(({ target }) => target),
    ...OBJECT_TABLES,
    ...VECTOR_TABLES,
    ...PLUGIN_TABLES,
    ...RECORD_TABLES,
    'member',
  ];
  await client.query(`lock table ${tables.map((table) => `svc.${table}`).join(', ')} in exclusive mode`);
  const checks = tables.map((table) => `select '${table}' as name where exists (select from svc.${table})`);
  const { rows } = await client.query<{ name: string }>(checks.join(' union all '));
  if (rows.length === 0) return;
  const used = rows.map(({ name }) => name);
  throw new PlatformError(
    'CONFLICT',
    `The database at ${server} is not empty: ${used.slice(0, 3).join(', ')}${used.length > 3 ? ' and others' : ''} have rows.`,
    {
      details: { tables: used, hint: 'Create another database, run svc migrate on it, and copy into that.' },
    },
  );
}

async function copyTables(client: pg.Client, options: StoreCopyOptions): Promise<CopiedTable[]> {
  const { source, onTable } = options;
  const copied: CopiedTable[] = [];
  const report = (table: CopiedTable): void => {
    copied.push(table);
    onTable?.(table);
  };
  for (const table of TABLE_COPIES) {
    if (source.has(table.file)) report(await copyTable(client, options, table));
  }
  const objects = await copyObjects(client, source);
  const counted = source.number('state.db', 'select count(*) from object');
  await requireSameCount(client, 'state_object', objects, counted);
  report({ table: 'state_object', rows: objects });
  const vectors = await copyVectors(client, source);
  await requireSameCount(
    client,
    'vector_item',
    vectors,
    source.number('vectors.db', 'select count(*) from item'),
  );
  report({ table: 'vector_item', rows: vectors });
  if (options.plugins)
    report({ table: 'plugin_lock', rows: await copyPlugins(client, options.plugins, options.now) });
  for (const table of RECORD_TABLES) {
    const records = await copyRecords(client, options, table);
    await requireSameCount(
      client,
      table,
      records,
      source.number('telemetry.db', `select count(*) from ${table}`),
    );
    report({ table, rows: records });
  }
  await client.query(
    `insert into svc.delivery_usage (records, unhandled, bytes)
     select count(*), count(*) filter (where ${IS_UNHANDLED}),
       coalesce(sum(svc.record_bytes(headers, steps, outcome)), 0)
         + (select coalesce(sum(octet_length(body)), 0) from svc.delivery_body)
     from svc.delivery having count(*) > 0`,
  );
  return copied;
}

async function copyTable(
  client: pg.Client,
  { source, now }: StoreCopyOptions,
  table: TableCopy,
): Promise<CopiedTable> {
  const { file, target } = table;
  const columns = await columnsOf(client, target);
  const values = (table.source ?? '').includes(':now') ? { now } : {};
  const written = await insertRows(
    client,
    target,
    columns,
    source.rows(file, selectOf(table, columns), values),
  );
  const from = table.source ?? target;
  await requireSameCount(
    client,
    target,
    written,
    source.number(file, `select count(*) from ${from}`, values),
  );
  return { table: target, rows: written };
}

/** Returns a SELECT with the columns of the target. The copy fails if the source lacks a column. */
function selectOf({ source, target, large = [] }: TableCopy, columns: readonly Column[]): string {
  // The sequence number of a run is in the column `seq` of the table `run`, and in the column `run_seq` of all other
  // tables.
  const run = target === 'run' ? 'seq' : 'run_seq';
  const selected = columns.map(({ name }) =>
    large.includes(name)
      ? `iif("${name}" like '@%', (
          select body from large_value v where v.run_seq = row.${run} and v.n = cast(substr(row."${name}", 2) as integer)
        ), "${name}") as "${name}"`
      : `row."${name}"`,
  );
  return `select ${selected.join(', ')} from ${source ?? target} as row`;
}

async function requireSameCount(
  client: pg.Client,
  table: string,
  written: number,
  expected: number,
): Promise<void> {
  const { rows } = await client.query<{ count: string }>(`select count(*) as count from svc.${table}`);
  const stored = Number(rows[0]!.count);
  if (written === expected && stored === expected) return;
  throw new PlatformError(
    'STORE_ERROR',
    `${table} has ${expected} rows in the data folder, but ${stored} in PostgreSQL. Nothing was copied.`,
    { details: { table, expected, stored } },
  );
}

/** Sets all number sequences above the highest number ever used. Clients keep these numbers as cursors. */
async function continueNumbers(client: pg.Client, source: CopySource): Promise<void> {
  const fences = [
    source.highest('svc.db', 'member', 'fence'),
    source.highest('workflow.db', 'member', 'fence'),
  ];
  await continueSequence(client, 'member', 'fence', Math.max(...fences));
  for (const { file, target, identity } of TABLE_COPIES) {
    if (identity) await continueSequence(client, target, identity, source.highest(file, target, identity));
  }
  const position = source.highest('svc.db', 'delivery', 'position');
  await client.query(
    `update svc.position_origin
     set added = greatest(added, $1::bigint / ${POSITIONS_PER_TRANSACTION} + 1 - pg_current_xact_id()::text::bigint)`,
    [position],
  );
}

/**
 * Raises the sequence of a column. If the copy fails, PostgreSQL does not roll back the sequence. This only leaves
 * unused numbers.
 */
async function continueSequence(
  client: pg.Client,
  table: string,
  column: string,
  highest: number,
): Promise<void> {
  if (highest === 0) return;
  await client.query('select setval(pg_get_serial_sequence($1, $2), $3)', [`svc.${table}`, column, highest]);
}
