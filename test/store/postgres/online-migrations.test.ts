import { describe, expect, test } from 'vitest';
import { silentLogger } from '../../../src/kit/telemetry/logger.ts';
import { PostgresDatabase } from '../../../src/store/postgres/database.ts';
import { LIST_INDEXES } from '../../../src/store/postgres/gateway/list-indexes.ts';
import { PORTAL_URLS } from '../../../src/store/postgres/gateway/messages/schema.ts';
import { migratePostgres } from '../../../src/store/postgres/migrate.ts';
import { MIGRATIONS } from '../../../src/store/postgres/migrations.ts';
import {
  DELIVERY_TRACE,
  EVENT_TRACE,
  RUN_DELIVERIES,
  RUN_TRACE,
} from '../../../src/store/postgres/trace-schema.ts';
import { RUN_HOURS_OF_EARLIER } from '../../../src/store/postgres/workflow/run-search-schema.ts';
import { atEnd } from '../../support/at-end.ts';
import { emptyPostgres, POSTGRES_MISSING, POSTGRES_PROGRAMS } from '../../support/postgres.ts';

/** Schema of the nodes that run during the upgrade. */
const EARLIER = MIGRATIONS.findIndex(({ sql }) => sql === RUN_DELIVERIES);
const NOW = Date.UTC(2026, 10, 23, 12);
const HOUR_MS = 3_600_000;

const addRun = (id: string, status: string, at = NOW): string => `
  insert into svc.run (id, kind, tenant_id, workflow_id, definition_hash, status, ready, rank, priority, resume_count,
    crashes, kills, in_flight, trigger_kind, depth, host_id, request_id, trace_id, created_at, finished_at, input)
  values ('${id}', 'workflow', 'acme', 'w', 'h', '${status}', true, 0, 0, 0, 0, 0, false, 'api', 0, 'host', 'r', 't', ${at},
    ${status === 'queued' ? 'null' : at}, '{}')`;
const addDelivery = (position: number): string => `
  insert into svc.delivery (position, webhook_id, namespace_id, plugin_id, event, instance_id, received_at, source,
    request_id, trace_id, mode, origin, status, steps, body_bytes, headers)
  values (${position}, gen_random_uuid(), 'acme', 'p', 'e', 'i', ${NOW}, 's', 'r', 't', 'async', 'http', 'succeeded', '[]', 0,
    '{}')`;
const addEvent = (id: number): string => `
  insert into svc.event (id, event_id, type, ts, ingest_ts, product, version, run_id, actor_key, ctx, occurrences)
  values (${id}, '${id}', 't', ${NOW}, ${NOW}, 'p', '1', 'r', 'a', '{"traceId":"t"}', 1)`;
const endRun = (id: string): string =>
  `update svc.run set status = 'succeeded', finished_at = ${NOW} where id = '${id}'`;

/** Builds without a transaction id. Readers of the change feed wait for transactions that have an id. */
const BUILDS = `select relid::regclass::text as table, pid
  from pg_stat_progress_create_index build join pg_stat_activity using (pid)
  where build.datname = current_database() and phase = 'waiting for old snapshots' and backend_xid is null`;
/** Locks on tables and indexes of the platform that keep writers or readers waiting. */
const BLOCKING = `select relation::regclass::text as relation, mode from pg_locks
  where relation in (select oid from pg_class where relnamespace = 'svc'::regnamespace)
    and database = (select oid from pg_database where datname = current_database())
    and mode in ('ShareLock', 'ShareRowExclusiveLock', 'ExclusiveLock', 'AccessExclusiveLock')`;
const INDEX = `select indisvalid as valid, (select count(*) from pg_inherits where inhparent = indrelid) as partitions,
    (select count(*) from pg_inherits join pg_index p on p.indexrelid = inhrelid
     where inhparent = i.indexrelid and p.indisvalid) as parts
  from pg_index i where indexrelid = to_regclass($1)`;

async function open(): Promise<PostgresDatabase> {
  const options = { logger: silentLogger, applicationName: 'svc-test' };
  const database = new PostgresDatabase({ ...options, url: await emptyPostgres() });
  atEnd(() => database.close());
  return database;
}

/** Begins a transaction whose snapshot keeps builds of indexes from ending. Returns a function that ends it. */
async function holdSnapshot({ pool }: PostgresDatabase): Promise<() => Promise<void>> {
  const client = await pool.connect();
  await client.query('begin isolation level repeatable read; select from svc.member');
  return async () => {
    await client.query('commit');
    client.release();
  };
}

/** SQL of the migration that development versions applied in place of the empty one. */
const BLOCKING_INDEXES = `
  drop index svc.message_attempt_endpoint;
  drop index svc.message_attempt_failed;
  create index message_attempt_endpoint on svc.message_attempt (endpoint_id, succeeded, started_at, message_id, number);
  create index alert_notification_waiting on svc.alert_notification (namespace_id, channel, created_at)
    where status = 'pending';
  create index alert_namespace_state on svc.alert (namespace_id, state, id);
  create index alert_namespace_kind on svc.alert (namespace_id, kind, id);
  create index alert_namespace_rule on svc.alert (namespace_id, rule, id);
  create index connection_failed on svc.connection (namespace_id, name) where status = 'failed';
  create index connection_expiry on svc.connection (expires_at) where status = 'active';`;
const ALL_INDEXES = `select indexdef from pg_indexes where schemaname = 'svc' order by 1`;

async function addRows(database: PostgresDatabase, n: number): Promise<void> {
  for (const row of [addRun(`run_${n}`, 'succeeded'), addDelivery(n), addEvent(n)])
    await database.sql(`set local lock_timeout = 1; ${row}`);
}

describe.skipIf(!POSTGRES_PROGRAMS)(POSTGRES_PROGRAMS ? 'Upgrade of running nodes' : POSTGRES_MISSING, () => {
  test.each([
    { index: RUN_TRACE, built: 'svc.run' },
    { index: DELIVERY_TRACE, built: 'svc.delivery' },
    { index: EVENT_TRACE, built: 'svc.event_20261120' },
  ])('nodes write while index $index.name is built, and a build that failed is repeated', async (given) => {
    const { index, built } = given;
    const database = await open();
    const version = MIGRATIONS.findIndex((migration) => migration.index === index);
    await migratePostgres(database, MIGRATIONS.slice(0, version));
    await database.sql(`select svc.create_telemetry_days(${NOW})`);
    await addRows(database, 1);
    const buildOf = async () => (await database.sql<{ table: string; pid: number }>(BUILDS)).rows[0];

    const release = await holdSnapshot(database);
    const failed = expect(migratePostgres(database, MIGRATIONS.slice(0, version + 1))).rejects.toThrow();
    await expect.poll(async () => (await buildOf())?.table).toBe(built);
    expect((await database.sql(BLOCKING)).rows).toEqual([]);
    await addRows(database, 2);
    await database.sql('select pg_cancel_backend($1)', [(await buildOf())!.pid]);
    await failed;

    const repeated = migratePostgres(database, MIGRATIONS.slice(0, version + 1));
    await expect.poll(async () => (await buildOf())?.table).toBe(built);
    await database.sql(`select svc.create_telemetry_days(${NOW + 24 * HOUR_MS})`);
    await release();
    expect((await repeated).after.version).toBe(version + 1);
    const { rows } = await database.sql(INDEX, [`svc.${index.name}`]);
    const partitions = index === EVENT_TRACE ? 8 : 0;
    expect(rows).toEqual([{ valid: true, partitions, parts: partitions }]);
  });

  test('nodes store attempts while the indexes of lists are built', async () => {
    const database = await open();
    const first = MIGRATIONS.findIndex(({ index }) => index === LIST_INDEXES[0]);
    const last = MIGRATIONS.findIndex(({ index }) => index === LIST_INDEXES.at(-1));
    await migratePostgres(database, MIGRATIONS.slice(0, first));
    const release = await holdSnapshot(database);
    const migrated = migratePostgres(database, MIGRATIONS.slice(0, last + 1));
    await expect
      .poll(async () => (await database.sql<{ table: string }>(BUILDS)).rows[0]?.table)
      .toBe('svc.message_attempt');
    expect((await database.sql(BLOCKING)).rows).toEqual([]);
    await database.sql(`set local lock_timeout = 1;
      insert into svc.message_attempt (message_id, endpoint_id, number, "trigger", started_at, duration_ms, succeeded)
      values ('m', 'e', 1, 'first', 1, 1, 1)`);
    await release();
    await migrated;
    for (const { name } of LIST_INDEXES)
      expect((await database.sql(INDEX, [`svc.${name}`])).rows).toMatchObject([{ valid: true }]);
  });

  test('no migration after the first upgrade of running nodes builds an index of an existing table in its SQL', () => {
    const blocking = MIGRATIONS.slice(EARLIER).flatMap(({ sql = '' }) => {
      const created = new Set([...sql.matchAll(/create table (svc\.\w+)/g)].map(([, table]) => table));
      const indexed = [...sql.matchAll(/create (?:unique )?index (\w+) on (svc\.\w+)/g)];
      return indexed.filter(([, , table]) => !created.has(table)).map(([, name]) => name);
    });
    expect(blocking).toEqual([]);
  });

  test('a database with the list indexes of a development version gets those of a new database', async () => {
    const [upgraded, fresh] = [await open(), await open()];
    const until = MIGRATIONS.findIndex(({ sql }) => sql === PORTAL_URLS) + 1;
    const developed = MIGRATIONS.slice(0, until);
    developed[until - 2] = { sql: BLOCKING_INDEXES, minVersion: 1 };
    await migratePostgres(upgraded, developed);
    for (const database of [upgraded, fresh]) await migratePostgres(database);
    const indexes = (await fresh.sql(ALL_INDEXES)).rows;
    expect((await upgraded.sql(ALL_INDEXES)).rows).toEqual(indexes);
  });

  test('machines that migrate at once do not wait for each other in a circle', async () => {
    const database = await open();
    await migratePostgres(database, MIGRATIONS.slice(0, EARLIER));
    const results = await Promise.all([1, 2, 3].map(() => migratePostgres(database)));
    expect(results.map(({ after }) => after.version)).toEqual(Array(3).fill(MIGRATIONS.length));
  });

  test('runs that end and start during the upgrade are counted once, and counting locks no table', async () => {
    const database = await open();
    await migratePostgres(database, MIGRATIONS.slice(0, EARLIER));
    await database.sql(addRun('old', 'failed', NOW - HOUR_MS));
    for (const id of ['ends', 'stays']) await database.sql(addRun(id, 'queued'));
    await database.sql(
      addRun('bulk', 'succeeded').replace("values ('bulk'", "select 'bulk_' || n").replace(/\)$/, '') +
        ' from generate_series(1, 25000) as n',
    );
    const counting = MIGRATIONS.findIndex(({ batch }) => batch === RUN_HOURS_OF_EARLIER);
    await migratePostgres(database, MIGRATIONS.slice(0, counting));
    await database.sql(endRun('ends'));
    await database.sql(addRun('new', 'cancelled'));

    const client = await database.pool.connect();
    await client.query('begin');
    await client.query(RUN_HOURS_OF_EARLIER);
    expect((await database.sql(BLOCKING)).rows).toEqual([]);
    await client.query('commit');
    client.release();
    await migratePostgres(database);
    await database.sql(endRun('stays'));
    const { rows } = await database.sql(`
      select hour, sum(started) as started, sum(succeeded) as succeeded, sum(failed) as failed,
        sum(cancelled) as cancelled, min(first_seq) as first, max(last_seq) as last
      from (select * from svc.run_hour union all select * from svc.run_hour_change) as counted
      group by hour order by hour`);
    expect(rows).toEqual([
      { hour: NOW - HOUR_MS, started: 1, succeeded: 0, failed: 1, cancelled: 0, first: 1, last: 1 },
      { hour: NOW, started: 25003, succeeded: 25002, failed: 0, cancelled: 1, first: 2, last: 25004 },
    ]);
    expect((await database.sql(`select to_regclass('svc.run_hour_progress') as found`)).rows).toEqual([
      { found: null },
    ]);
  });
});
