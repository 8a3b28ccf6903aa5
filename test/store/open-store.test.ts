import { describe, expect, test } from 'vitest';
import { silentLogger } from '../../src/kit/telemetry/logger.ts';
import { systemClock } from '../../src/kit/time/clock.ts';
import {
  openGatewayStore,
  openStateStore,
  openTelemetryReader,
  openWorkflowStore,
  type StoreOptions,
} from '../../src/store/open-store.ts';
import { PostgresDatabase } from '../../src/store/postgres/database.ts';
import { migratePostgres } from '../../src/store/postgres/migrate.ts';
import { atEnd } from '../support/at-end.ts';
import { tempDir } from '../support/daemon.ts';
import { emptyPostgres, POSTGRES_MISSING, POSTGRES_PROGRAMS } from '../support/postgres.ts';

async function optionsFor(postgresUrl: string | null): Promise<StoreOptions> {
  return { postgresUrl, dataDir: await tempDir(), clock: systemClock, logger: silentLogger };
}

async function openAll(options: StoreOptions) {
  const stores = [
    await openGatewayStore(options),
    await openStateStore(options),
    await openWorkflowStore(options),
  ];
  atEnd(() => Promise.all(stores.map((store) => store.close())));
  return stores;
}

test('without a PostgreSQL URL, the stores of all services open as SQLite files', async () => {
  const stores = await openAll(await optionsFor(null));
  await Promise.all(stores.map((store) => store.probe()));
});

describe.skipIf(!POSTGRES_PROGRAMS)(POSTGRES_PROGRAMS ? 'PostgreSQL' : POSTGRES_MISSING, () => {
  test('the stores open once the database is migrated, and name the command until then', async () => {
    const url = await emptyPostgres();
    const options = await optionsFor(url);
    for (const open of [openGatewayStore, openStateStore, openWorkflowStore])
      await expect(open(options)).rejects.toMatchObject({
        code: 'STORE_ERROR',
        message: expect.stringContaining('svc migrate --yes'),
      });
    const telemetry = openTelemetryReader(options);
    atEnd(() => telemetry.close());
    await expect(telemetry.stats({})).rejects.toMatchObject({
      code: 'STORE_ERROR',
      message: expect.stringContaining('svc migrate --yes'),
    });
    const database = new PostgresDatabase({ url, logger: silentLogger, applicationName: 'svc-test' });
    await migratePostgres(database);
    await database.close();
    const stores = await openAll(options);
    await Promise.all(stores.map((store) => store.probe()));
    expect(await telemetry.stats({})).toMatchObject({ total: 0 });
  });

  test('the error of an unreachable server does not contain the password', async () => {
    const options = await optionsFor('postgres://svc:hidden-word@127.0.0.1:1/svc');
    const error = await openGatewayStore(options).catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ code: 'STORE_ERROR', message: expect.stringContaining('127.0.0.1:1') });
    expect(JSON.stringify(error) + String(error)).not.toContain('hidden-word');
  });
});
