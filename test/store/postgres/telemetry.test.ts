import { describe } from 'vitest';
import { silentLogger } from '../../../src/kit/telemetry/logger.ts';
import { manualClock } from '../../../src/kit/time/clock.ts';
import { PostgresDatabase, postgresTelemetryStore } from '../../../src/store/postgres/index.ts';
import { migratedPostgres } from '../../support/migrated-postgres.ts';
import { POSTGRES_MISSING, POSTGRES_PROGRAMS } from '../../support/postgres.ts';
import { NOON } from '../../support/telemetry.ts';
import { describeTelemetry } from '../suites/telemetry.ts';

/** One migrated database per data folder, as the suite expects. */
const urls = new Map<string, Promise<string>>();

describe.skipIf(!POSTGRES_PROGRAMS)(POSTGRES_PROGRAMS ? 'PostgreSQL' : POSTGRES_MISSING, () => {
  describeTelemetry('postgres', async ({ dataDir }) => {
    if (!urls.has(dataDir)) urls.set(dataDir, migratedPostgres());
    const url = await urls.get(dataDir)!;
    const database = new PostgresDatabase({ url, logger: silentLogger, applicationName: 'svc-test' });
    const store = postgresTelemetryStore(database, manualClock(NOON));
    return { port: store, close: () => store.close() };
  });
});
