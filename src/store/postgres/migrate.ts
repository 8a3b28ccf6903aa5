import { setTimeout as sleep } from 'node:timers/promises';
import type pg from 'pg';
import { codeOf, PlatformError } from '../../kit/errors/errors.ts';
import { createIndex, dropIndex } from './concurrent-index.ts';
import type { PostgresDatabase } from './database.ts';
import { DATABASE_TIME } from './database-clock.ts';
import { isContract, MIGRATIONS, type Migration, requiredSchema } from './migrations.ts';
import { postgresError } from './postgres-error.ts';

/** State of a database's schema. Version 0 means that the platform has no tables yet. */
export interface SchemaState {
  version: number;
  /** Programs that were built for an older schema version must not run on this database. */
  minVersion: number;
}

/** A live member that was built for a schema version which a contract migration no longer supports. */
export interface OutdatedMember {
  instance: string;
  kind: string;
  version: string;
}

export interface Migrated {
  before: SchemaState;
  after: SchemaState;
  /** Contract migration that was not applied, with the members for which it waits. */
  waiting?: { version: number; members: OutdatedMember[] };
}

/** Key of the advisory lock for migrations. Consists of the bytes of `svc` and a 1. */
const LOCK_KEY = 0x73766301;

/**
 * Time limit to lock a table. Requests of running nodes that use the table wait behind the migration. The limit is above
 * `deadlock_timeout`, after which PostgreSQL cancels an autovacuum that holds the lock.
 */
const LOCK_TIMEOUT_MS = 3000;
/** A lock that was not free in time, or a deadlock: an index build and retention can wait for each other. */
const RETRIED_CODES: readonly (string | undefined)[] = ['55P03', '40P01'];
const MAX_LOCK_ATTEMPTS = 30;
const LOCK_PAUSE_MS = 500;

/** SQL for the version and the minimum version of the schema. */
export const SELECT_SCHEMA =
  'select version, min_version as "minVersion" from svc.schema_version order by version desc limit 1';

export async function readSchemaState({ pool, server }: PostgresDatabase): Promise<SchemaState> {
  try {
    return await schemaState(pool);
  } catch (error) {
    throw postgresError(server, error);
  }
}

/**
 * Applies pending migrations. Several machines can call this function at the same time.
 * Stops before a contract migration while members that it no longer supports are alive. Throws CONFLICT if this
 * program needs a migration behind that one, or if a long transaction uses a table to be changed.
 */
export async function migratePostgres(
  { pool, server }: PostgresDatabase,
  migrations: readonly Migration[] = MIGRATIONS,
  { lockAttempts = MAX_LOCK_ATTEMPTS } = {},
): Promise<Migrated> {
  try {
    const client = await pool.connect();
    try {
      await lock(client);
      const before = await schemaState(client);
      requireKnownVersion(before, migrations, server);
      const waiting = await applyPending(client, migrations, { applied: before.version, lockAttempts });
      const after = await schemaState(client);
      if (waiting && after.version < requiredSchema(migrations)) throw waitingError(server, waiting);
      return { before, after, ...(waiting ? { waiting } : {}) };
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
  const needed = requiredSchema(migrations);
  if (state.version < needed) {
    throw new PlatformError(
      'STORE_ERROR',
      state.version === 0
        ? `The database at ${server} has no tables yet. Run \`svc migrate --yes\`.`
        : `The database at ${server} has schema ${state.version}, but this version of svc needs ${needed}. Run \`svc migrate --yes\`.`,
      { details: { server, schema: state.version, knownSchema: migrations.length } },
    );
  }
  requireKnownVersion(state, migrations, server);
}

/** Describes members for messages, one per node and version. */
export function membersText(members: readonly OutdatedMember[]): string {
  return [...new Set(members.map(({ instance, version }) => `${instance} (svc ${version})`))].join(', ');
}

/**
 * Waits until no other machine migrates. Tries again and again, because a statement that waits for the lock would be a
 * transaction for whose end the index build of the other machine waits.
 */
async function lock(client: pg.PoolClient): Promise<void> {
  for (;;) {
    const { rows } = await client.query<{ locked: boolean }>('select pg_try_advisory_lock($1) as locked', [
      LOCK_KEY,
    ]);
    if (rows[0]!.locked) return;
    await sleep(LOCK_PAUSE_MS);
  }
}

function waitingError(server: string, { version, members }: Required<Migrated>['waiting']): PlatformError {
  return new PlatformError(
    'CONFLICT',
    `The database at ${server} cannot be upgraded beyond schema ${version - 1}, because older nodes are running: ${membersText(members)}. Upgrade them to the version between first, or stop them, then run \`svc migrate --yes\`.`,
    { details: { server, schema: version - 1, members } },
  );
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
  const { rows } = await client.query<SchemaState>(SELECT_SCHEMA);
  return rows[0] ?? { version: 0, minVersion: 0 };
}

/** Returns the contract migration that could not be applied, or undefined if all migrations are applied. */
async function applyPending(
  client: pg.PoolClient,
  migrations: readonly Migration[],
  { applied, lockAttempts }: { applied: number; lockAttempts: number },
): Promise<Migrated['waiting']> {
  for (let version = applied + 1; version <= migrations.length; version++) {
    const members = await applyInTime(client, migrations, { version, lockAttempts });
    if (members.length > 0) return { version, members };
  }
  return undefined;
}

/** Repeats a migration that could not lock its tables in time, because running nodes use the tables. */
async function applyInTime(
  client: pg.PoolClient,
  migrations: readonly Migration[],
  { version, lockAttempts }: { version: number; lockAttempts: number },
): Promise<OutdatedMember[]> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await apply(client, migrations, version);
    } catch (error) {
      if (!RETRIED_CODES.includes(codeOf(error))) throw error;
      if (attempt === lockAttempts) throw tableInUse(error);
      await sleep(LOCK_PAUSE_MS);
    }
  }
}

/** Applies one migration. Applies nothing if members that it no longer supports are alive, and returns these members. */
async function apply(
  client: pg.PoolClient,
  migrations: readonly Migration[],
  version: number,
): Promise<OutdatedMember[]> {
  const { sql, index, drop = [], batch, minVersion } = migrations[version - 1]!;
  if (index) await createIndex(client, index, { lockTimeoutMs: LOCK_TIMEOUT_MS });
  for (const name of drop) await dropIndex(client, name);
  if (batch) while ((await client.query(batch)).rows.length > 0);
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
    const outdated = isContract(migrations, version) ? await endOutdated(client, minVersion) : [];
    if (outdated.length > 0) {
      await client.query('rollback');
      return outdated;
    }
    if (sql !== undefined) await client.query(sql);
    await client.query('insert into svc.schema_version (version, min_version) values ($1, $2)', [
      version,
      minVersion,
    ]);
    await client.query('commit');
    return [];
  } catch (error) {
    await client.query('rollback').catch(() => {});
    throw error;
  }
}

/**
 * Returns the live members that know only schemas before `minVersion`. Ends such members whose lease has expired, so
 * that they stop when they reach the database again. The lock keeps members from joining until the migration ends.
 */
async function endOutdated(client: pg.PoolClient, minVersion: number): Promise<OutdatedMember[]> {
  await client.query('lock table svc.member in share row exclusive mode');
  const isOutdated = 'ended_at is null and coalesce(schema, 0) < $1';
  const { rows } = await client.query<OutdatedMember>(
    `select instance, kind, version from svc.member
     where ${isOutdated} and (lease_until is null or lease_until > ${DATABASE_TIME}) order by instance, fence`,
    [minVersion],
  );
  if (rows.length === 0)
    await client.query(`update svc.member set ended_at = ${DATABASE_TIME} where ${isOutdated}`, [minVersion]);
  return rows;
}

function tableInUse(cause: unknown): PlatformError {
  return new PlatformError(
    'CONFLICT',
    'A long transaction, such as that of pg_dump, uses a table to be changed. Nothing was changed by this step.',
    { details: { hint: 'Run svc migrate again when that transaction has ended.' }, cause },
  );
}
