import { describe, expect, test } from 'vitest';
import { silentLogger } from '../../../src/kit/telemetry/logger.ts';
import { PostgresDatabase } from '../../../src/store/postgres/database.ts';
import {
  migratePostgres,
  readSchemaState,
  requireUsableSchema,
} from '../../../src/store/postgres/migrate.ts';
import { MIGRATIONS } from '../../../src/store/postgres/migrations.ts';
import { atEnd } from '../../support/at-end.ts';
import { freePort } from '../../support/ports.ts';
import { emptyPostgres, POSTGRES_MISSING, POSTGRES_PROGRAMS } from '../../support/postgres.ts';

const NEWEST = MIGRATIONS.length;

function connect(url: string): PostgresDatabase {
  const database = new PostgresDatabase({ url, logger: silentLogger, applicationName: 'svc-test' });
  atEnd(() => database.close());
  return database;
}

const open = async (): Promise<PostgresDatabase> => connect(await emptyPostgres());

describe.skipIf(!POSTGRES_PROGRAMS)(POSTGRES_PROGRAMS ? 'PostgreSQL schema' : POSTGRES_MISSING, () => {
  test('an empty database is refused until it is migrated', async () => {
    const database = await open();
    const empty = await readSchemaState(database);
    expect(empty.version).toBe(0);
    expect(() => requireUsableSchema(empty, database.server)).toThrow(
      /no tables yet\. Run `svc migrate --yes`/,
    );
    const { before, after } = await migratePostgres(database);
    expect([before.version, after.version]).toEqual([0, NEWEST]);
    requireUsableSchema(await readSchemaState(database), database.server);
  });

  test('a second migration changes nothing', async () => {
    const database = await open();
    await migratePostgres(database);
    const { before, after } = await migratePostgres(database);
    expect(before).toEqual(after);
  });

  test('of several machines that migrate at once one applies each migration', async () => {
    const url = await emptyPostgres();
    const results = await Promise.all(Array.from({ length: 5 }, () => migratePostgres(connect(url))));
    expect(results.filter(({ before }) => before.version === 0)).toHaveLength(1);
    expect(results.map(({ after }) => after.version)).toEqual(Array(5).fill(NEWEST));
  });

  test('a migration gives up while a dump uses a table, instead of keeping services waiting', async () => {
    const database = await open();
    const first = [{ sql: 'create table svc.first (n integer)', minVersion: 1 }];
    await migratePostgres(database, first);
    const dump = await database.pool.connect();
    await dump.query('begin; select from svc.first');
    const migrating = migratePostgres(database, [...first, { sql: 'drop table svc.first', minVersion: 1 }]);
    await expect(migrating).rejects.toMatchObject({ code: 'CONFLICT' });
    await dump.query('commit');
    dump.release();
    expect((await readSchemaState(database)).version).toBe(1);
  });

  test('a migration that fails leaves the version and the tables as they were', async () => {
    const database = await open();
    const migrations = [
      { sql: 'create table svc.first (n integer)', minVersion: 1 },
      { sql: 'create table svc.second (n integer); select 1 / 0', minVersion: 1 },
    ];
    await expect(migratePostgres(database, migrations)).rejects.toThrow(/division by zero/);
    expect(await readSchemaState(database)).toEqual({ version: 1, minVersion: 1 });
    const { rows } = await database.sql(`select to_regclass('svc.second') as found`);
    expect(rows).toEqual([{ found: null }]);
  });

  test('a program runs on a newer schema only if that schema still supports it', async () => {
    const database = await open();
    const expanded = [...MIGRATIONS, { sql: 'create table svc.later (n integer)', minVersion: NEWEST }];
    await migratePostgres(database, expanded);
    requireUsableSchema(await readSchemaState(database), database.server);
    const contracted = [...expanded, { sql: 'drop table svc.later', minVersion: NEWEST + 1 }];
    await migratePostgres(database, contracted);
    const state = await readSchemaState(database);
    expect(() => requireUsableSchema(state, database.server)).toThrow(/needs a newer version of svc/);
    await expect(migratePostgres(database)).rejects.toMatchObject({
      code: 'STORE_ERROR',
      details: { schema: NEWEST + 2, knownSchema: NEWEST },
    });
  });

  test('a server that cannot be reached, and a database that does not exist, name the remedy', async () => {
    const absent = connect(`postgres://svc:secret@127.0.0.1:${await freePort()}/platform`);
    const unreachable = await readSchemaState(absent).catch((error: unknown) => error);
    expect(unreachable).toMatchObject({ code: 'STORE_ERROR', details: { reason: 'ECONNREFUSED' } });
    expect(String(unreachable)).toMatch(/cannot be reached\. Start the server, or check store\.url/);
    expect(JSON.stringify(unreachable)).not.toContain('secret');
    const url = new URL(await emptyPostgres());
    url.pathname = '/nowhere';
    await expect(readSchemaState(connect(url.href))).rejects.toThrow(
      /does not exist\. Create it with `createdb`/,
    );
  });

  test('the loss of all connections fails calls in flight, and later calls work again', async () => {
    const database = await open();
    await migratePostgres(database);
    const sleeping = database.sql('select pg_sleep(60)');
    const refused = expect(sleeping).rejects.toMatchObject({ code: 'STORE_ERROR' });
    await expect
      .poll(async () => {
        const { rows } = await database.sql<{ count: number }>(
          `select count(pg_terminate_backend(pid)) as count from pg_stat_activity
           where datname = current_database() and query like '%pg_sleep(60)%' and pid <> pg_backend_pid()`,
        );
        return rows[0]!.count;
      })
      .toBe(1);
    await refused;
    expect((await readSchemaState(database)).version).toBe(NEWEST);
  });
});
