import type pg from 'pg';
import { codeOf, PlatformError } from '../../kit/errors/errors.ts';
import type { PostgresDatabase } from './database.ts';
import { MIGRATIONS, type Migration } from './migrations.ts';
import { postgresError } from './postgres-error.ts';

/** State of a database's schema. Version 0 means that the platform has no tables yet. */
export interface SchemaState {
  version: number;
  /** Programs that were built for an older schema version must not run on this database. */
  minVersion: number;
}

/** Key of the advisory lock for migrations. Consists of the bytes of `svc` and a 1. */
const LOCK_KEY = 0x73766301;

/**
 * Time limit for the lock of a table. Services that use the table wait behind the migration, which itself may wait for a
 * dump.
 */
const LOCK_TIMEOUT_MS = 5000;
const LOCK_TIMEOUT_CODE = '55P03';

export async function readSchemaState({ pool, server }: PostgresDatabase): Promise<SchemaState> {
  try {
    return await schemaState(pool);
  } catch (error) {
    throw postgresError(server, error);
  }
}

/**
 * Applies pending migrations, each in its own transaction. Several machines can call this function at the same time.
 */
export async function migratePostgres(
  { pool, server }: PostgresDatabase,
  migrations: readonly Migration[] = MIGRATIONS,
): Promise<{ before: SchemaState; after: SchemaState }> {
  try {
    const client = await pool.connect();
    try {
      await client.query('select pg_advisory_lock($1)', [LOCK_KEY]);
      const before = await schemaState(client);
      requireKnownVersion(before, migrations, server);
      for (let version = before.version; version < migrations.length; version++) {
        await apply(client, migrations[version]!, version + 1);
      }
      return { before, after: await schemaState(client) };
    } finally {
      // Closing the connection also releases the advisory lock.
      client.release(true);
    }
  } catch (error) {
    throw postgresError(server, error);
  }
}

/** Throws STORE_ERROR if this program must not run on the database. The message contains the remedy. */
export function requireUsableSchema(
  state: SchemaState,
  server: string,
  migrations: readonly Migration[] = MIGRATIONS,
): void {
  const details = { server, schema: state.version, knownSchema: migrations.length };
  if (state.version < migrations.length) {
    throw new PlatformError(
      'STORE_ERROR',
      state.version === 0
        ? `The database at ${server} has no tables yet. Run \`svc migrate --yes\`.`
        : `The database at ${server} has schema ${state.version}, but this version of svc needs ${migrations.length}. Run \`svc migrate --yes\`.`,
      { details },
    );
  }
  requireKnownVersion(state, migrations, server);
}

function requireKnownVersion(
  { version, minVersion }: SchemaState,
  { length }: readonly Migration[],
  server: string,
): void {
  if (minVersion <= length) return;
  throw new PlatformError(
    'STORE_ERROR',
    `The database at ${server} has schema ${version}, which needs a newer version of svc: this one knows schema ${length}. Upgrade svc on this machine.`,
    { details: { server, schema: version, knownSchema: length } },
  );
}

async function schemaState(client: pg.Pool | pg.PoolClient): Promise<SchemaState> {
  const { rows: found } = await client.query<{ table: string | null }>(
    `select to_regclass('svc.schema_version')::text as table`,
  );
  if (!found[0]?.table) return { version: 0, minVersion: 0 };
  const { rows } = await client.query<{ version: number; min_version: number }>(
    'select version, min_version from svc.schema_version order by version desc limit 1',
  );
  return { version: rows[0]?.version ?? 0, minVersion: rows[0]?.min_version ?? 0 };
}

async function apply(client: pg.PoolClient, { sql, minVersion }: Migration, version: number): Promise<void> {
  await client.query('begin');
  try {
    await client.query(`set local lock_timeout = ${LOCK_TIMEOUT_MS}`);
    if (version === 1) {
      await client.query(`create schema if not exists svc;
        create table svc.schema_version (
          version integer primary key,
          min_version integer not null,
          applied_at timestamptz not null default now()
        );`);
    }
    await client.query(sql);
    await client.query('insert into svc.schema_version (version, min_version) values ($1, $2)', [
      version,
      minVersion,
    ]);
    await client.query('commit');
  } catch (error) {
    await client.query('rollback').catch(() => {});
    throw codeOf(error) === LOCK_TIMEOUT_CODE ? tableInUse(error) : error;
  }
}

function tableInUse(cause: unknown): PlatformError {
  return new PlatformError(
    'CONFLICT',
    'A long transaction, such as that of pg_dump, uses a table to be changed. Nothing was changed by this step.',
    { details: { hint: 'Run svc migrate again when that transaction has ended.' }, cause },
  );
}
