import { describe, expect, test } from 'vitest';
import { silentLogger } from '../../../src/kit/telemetry/logger.ts';
import { systemClock } from '../../../src/kit/time/clock.ts';
import { days } from '../../../src/kit/time/duration.ts';
import { PostgresDatabase, postgresGatewayStore } from '../../../src/store/postgres/index.ts';
import { atEnd } from '../../support/at-end.ts';
import { migrateDatabase } from '../../support/migrated-postgres.ts';
import { delivery } from '../../support/new-delivery.ts';
import { POSTGRES_MISSING, POSTGRES_PROGRAMS, PostgresServer } from '../../support/postgres.ts';

describe.skipIf(!POSTGRES_PROGRAMS)(POSTGRES_PROGRAMS ? 'rows that no standby has' : POSTGRES_MISSING, () => {
  test('count neither as duplicates nor as deliveries to run until a standby has them', async () => {
    const server = await PostgresServer.start();
    atEnd(() => server.remove());
    await migrateDatabase(server.url());
    // Any user of the database may wait for the standby.
    await server.run('create role svc_app login; grant all on schema svc to svc_app');
    await server.run('grant all on all tables in schema svc to svc_app');
    await server.run('grant all on all functions in schema svc to svc_app');
    const url = new URL(server.url());
    url.username = 'svc_app';
    const database = new PostgresDatabase({
      ...{ url: url.href, logger: silentLogger, applicationName: 'svc-test' },
    });
    const { inbox, close } = postgresGatewayStore(database, { clock: systemClock, logger: silentLogger });
    atEnd(close);
    await inbox.accept(delivery(), { key: 'k', expiresAt: systemClock.now() + days(7) }, '');
    expect(await inbox.seen('k', systemClock.now())).toBe('done');

    await server.run("alter system set synchronous_standby_names = 'ANY 1 (*)'");
    await server.run('select pg_reload_conf()');
    await expect
      .poll(async () => (await server.run('show synchronous_standby_names')).rows[0])
      .toEqual({ synchronous_standby_names: 'ANY 1 (*)' });
    let answers = 0;
    const answered = async <Answer>(answer: Promise<Answer> | Answer): Promise<Answer> => {
      const value = await answer;
      answers++;
      return value;
    };
    const seen = answered(inbox.seen('k', systemClock.now()));
    const unfinished = answered(inbox.unfinished(10));
    const waiting = async () =>
      (await server.run("select from pg_stat_activity where wait_event = 'SyncRep'")).rowCount;
    await expect.poll(waiting).toBe(1);
    expect(answers).toBe(0);
    const standby = await server.startStandby();
    atEnd(() => standby.remove());
    expect(await seen).toBe('done');
    expect(await unfinished).toHaveLength(1);
  }, 60_000);
});
