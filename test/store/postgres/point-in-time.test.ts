import { chmod } from 'node:fs/promises';
import { expect, test } from 'vitest';
import { silentLogger } from '../../../src/kit/telemetry/logger.ts';
import { systemClock } from '../../../src/kit/time/clock.ts';
import { isCopy, PostgresDatabase, postgresGatewayStore } from '../../../src/store/postgres/index.ts';
import { atEnd } from '../../support/at-end.ts';
import { tempDir } from '../../support/daemon.ts';
import { migrateDatabase } from '../../support/migrated-postgres.ts';
import { delivery } from '../../support/new-delivery.ts';
import { POSTGRES_PROGRAMS, PostgresServer } from '../../support/postgres.ts';

function open(url: string) {
  const database = new PostgresDatabase({ url, logger: silentLogger, applicationName: 'svc-test' });
  const store = postgresGatewayStore(database, { clock: systemClock, logger: silentLogger });
  atEnd(() => store.close());
  return { database, store };
}

const accept = async ({ store }: ReturnType<typeof open>, requestId: string): Promise<void> => {
  await store.inbox.accept(delivery({ requestId }), undefined, '[]');
};

test.skipIf(!POSTGRES_PROGRAMS)(
  'a base backup and the archived log restore the platform as of a point in time',
  { timeout: 180_000 },
  async () => {
    const archive = await tempDir();
    await chmod(archive, 0o777);
    const server = await PostgresServer.start({
      settings: { archive_mode: 'on', archive_command: `cp %p ${archive}/%f` },
    });
    atEnd(() => server.remove());
    await migrateDatabase(server.url());
    const original = open(server.url());
    await accept(original, 'before the base');
    const base = await server.baseBackup();
    await accept(original, 'after the base');
    await server.run(`select pg_create_restore_point('noon')`);
    await accept(original, 'after noon');
    await server.run('delete from svc.webhook_secret');
    const { rows } = await server.run('select pg_walfile_name(pg_switch_wal()) as segment');
    const archived = `select last_archived_wal >= '${rows[0].segment}' and failed_count = 0 as done from pg_stat_archiver`;
    await expect.poll(async () => (await server.run(archived)).rows[0].done, { timeout: 60_000 }).toBe(true);
    await server.stop();

    const restored = await PostgresServer.recover(base, archive, 'noon');
    atEnd(() => restored.remove());
    await expect
      .poll(async () => (await restored.run('select pg_is_in_recovery() as is')).rows[0].is, {
        timeout: 60_000,
      })
      .toBe(false);
    const copy = open(restored.url());
    expect(await isCopy(copy.database)).toBe(false);
    const found = async () => (await copy.store.inbox.unfinished(10)).map(({ requestId }) => requestId);
    expect(await found()).toEqual(['before the base', 'after the base']);
    await accept(copy, 'on the restored server');
    expect(await found()).toHaveLength(3);
  },
);
