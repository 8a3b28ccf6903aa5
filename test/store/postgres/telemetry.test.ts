import pg from 'pg';
import { describe, expect, test } from 'vitest';
import { silentLogger } from '../../../src/kit/telemetry/logger.ts';
import { manualClock } from '../../../src/kit/time/clock.ts';
import { days } from '../../../src/kit/time/duration.ts';
import type { TelemetryLimits, TelemetryStore } from '../../../src/store/ports/telemetry.ts';
import { PostgresDatabase, postgresTelemetryStore } from '../../../src/store/postgres/index.ts';
import { atEnd } from '../../support/at-end.ts';
import { migratedPostgres } from '../../support/migrated-postgres.ts';
import { POSTGRES_MISSING, POSTGRES_PROGRAMS } from '../../support/postgres.ts';
import { append, keptEvent, logRecord, NOON } from '../../support/telemetry.ts';
import { describeTelemetry } from '../suites/telemetry.ts';

/** One migrated database per data folder, as the suite expects. */
const urls = new Map<string, Promise<string>>();

const PAGE = { limit: 100, offset: 0 };

function connect(url: string): PostgresDatabase {
  return new PostgresDatabase({ url, logger: silentLogger, applicationName: 'svc-test' });
}

describe.skipIf(!POSTGRES_PROGRAMS)(POSTGRES_PROGRAMS ? 'PostgreSQL' : POSTGRES_MISSING, () => {
  describeTelemetry('postgres', async ({ dataDir }) => {
    if (!urls.has(dataDir)) urls.set(dataDir, migratedPostgres());
    const url = await urls.get(dataDir)!;
    const store = postgresTelemetryStore(connect(url), { clock: manualClock(NOON) });
    return { port: store, close: () => store.close() };
  });

  test('partitions are created ahead, and dropped when all their records are expired', async () => {
    const { store, clock, partitions } = await start();
    await append(store, [logRecord({ time: NOON })], [keptEvent(NOON)]);
    expect(await partitions('log')).toEqual([
      ...['20291230', '20291231', '20300101', '20300102', '20300103', '20300104', '20300105'],
    ]);
    clock.advance(days(2));
    const limits = { logsBefore: NOON - days(1), eventsBefore: 0, maxBytes: 1e9 };
    await pruneAll(store, limits);
    expect(await partitions('log')).toEqual([
      ...['20300101', '20300102', '20300103', '20300104', '20300105', '20300106', '20300107'],
    ]);
    expect(await partitions('event')).toHaveLength(9);
    await pruneAll(store, { ...limits, logsBefore: NOON + 1 });
    expect((await store.logs({}, PAGE)).total).toBe(1);
    await pruneAll(store, { ...limits, logsBefore: NOON + days(0.5) });
    expect((await store.logs({}, PAGE)).total).toBe(0);
    // A platform that was stopped for months has no partition for today.
    clock.advance(days(90));
    await append(store, [logRecord({ time: clock.now() })]);
    expect((await store.logs({ from: clock.now() }, PAGE)).total).toBe(1);
    expect(await store.health()).toMatchObject({ partitions: 28 });
  });

  test('a wrong clock of a process creates no partitions', async () => {
    const { store } = await start();
    const times = [5, NOON - days(1000), NOON, NOON + days(1000)];
    await append(
      store,
      times.map((time) => logRecord({ time })),
      times.map((ts) => keptEvent(ts)),
    );
    const { items } = await store.logs({}, PAGE);
    expect(items.map(({ time }) => new Date(time).toISOString())).toEqual([
      '2030-01-05T23:59:59.999Z',
      '2030-01-02T12:00:00.000Z',
      '2029-12-30T00:00:00.000Z',
      '2029-12-30T00:00:00.000Z',
    ]);
    expect(await store.events({}, PAGE)).toMatchObject({ total: 4 });
    expect(await store.health()).toMatchObject({ partitions: 14 });
  });

  test('a batch that is appended again after an unconfirmed commit is stored once', async () => {
    const { store } = await start();
    const batch = { logs: [logRecord()], events: [keptEvent(NOON)], counts: { 'logs.kept': 1 } };
    for (let n = 0; n < 3; n++) await store.append(batch);
    expect((await store.logs({}, PAGE)).total).toBe(1);
    expect((await store.stats({})).total).toBe(1);
    expect(await store.counts()).toEqual({ 'logs.kept': 1 });
  });

  test('only commits of telemetry skip the wait for the disk', async () => {
    const { store, database } = await start();
    await database.sql('create table svc.seen (setting text)');
    await database.sql(`create function svc.note() returns trigger language plpgsql as $$ begin
      insert into svc.seen select current_setting('synchronous_commit'); return new; end $$`);
    await database.sql(
      'create trigger note after update on svc.telemetry_position for each row execute function svc.note()',
    );
    await append(store, [logRecord()]);
    const settings = await database.sql(
      `select setting from svc.seen union all select current_setting('synchronous_commit')`,
    );
    expect(settings.rows).toEqual([{ setting: 'off' }, { setting: 'on' }]);
  });

  test('a long query delays the removal of a partition, but neither writers nor readers', async () => {
    const { store, clock, url } = await start();
    await append(store, [logRecord()]);
    clock.advance(days(30));
    const client = new pg.Client(url);
    await client.connect();
    atEnd(() => client.end());
    await client.query('begin');
    await client.query('select count(*) from svc.log');
    const limits = { logsBefore: clock.now() - days(7), eventsBefore: 0, maxBytes: 1e9 };
    expect(await store.prune(limits)).toBe(false);
    await append(store, [logRecord({ time: clock.now() })]);
    expect((await store.logs({}, PAGE)).total).toBe(2);
    await client.query('commit');
    await pruneAll(store, limits);
    expect((await store.logs({}, PAGE)).total).toBe(1);
  });

  test('ids that clients keep as cursors rise with the time of arrival', async () => {
    const { store, clock } = await start();
    await append(store, [logRecord({ message: 'a' }), logRecord({ message: 'b' })]);
    const { after } = await store.latestLogs({}, 0);
    expect(Math.floor(after / 100)).toBe(NOON);
    clock.advance(days(40));
    await append(store, [logRecord({ message: 'late' }), logRecord({ message: 'c', time: clock.now() })]);
    const later = await store.logsAfter({}, after, 10);
    expect(later.map(({ record }) => record.message)).toEqual(['late', 'c']);
    expect(Math.floor(later[0]!.id / 100)).toBe(NOON + days(40));
  });
});

async function start() {
  const url = await migratedPostgres();
  const clock = manualClock(NOON);
  const database = connect(url);
  const store = postgresTelemetryStore(database, { clock });
  atEnd(() => store.close());
  const partitions = async (kind: string): Promise<string[]> => {
    const { rows } = await database.sql<{ day: string }>(
      `select right(inhrelid::regclass::text, 8) as day from pg_inherits where inhparent = 'svc.${kind}'::regclass order by 1`,
    );
    return rows.map(({ day }) => day);
  };
  return { url, clock, database, store, partitions };
}

async function pruneAll(store: TelemetryStore, limits: TelemetryLimits): Promise<void> {
  while (await store.prune(limits));
}
