import { describe } from 'vitest';
import { silentLogger } from '../../../src/kit/telemetry/logger.ts';
import type { Clock } from '../../../src/kit/time/clock.ts';
import { PostgresDatabase } from '../../../src/store/postgres/database.ts';
import { postgresClients } from '../../../src/store/postgres/gateway/clients.ts';
import { postgresHosts } from '../../../src/store/postgres/gateway/hosts.ts';
import { PostgresWebhookInbox } from '../../../src/store/postgres/gateway/inbox/inbox.ts';
import { postgresRefreshTokens } from '../../../src/store/postgres/gateway/refresh-tokens.ts';
import {
  postgresMintedTokens,
  postgresRevocations,
} from '../../../src/store/postgres/gateway/revocations.ts';
import { postgresWebhookSecrets } from '../../../src/store/postgres/gateway/webhook-secrets.ts';
import { migratePostgres } from '../../../src/store/postgres/migrate.ts';
import { PostgresKeyValue } from '../../../src/store/postgres/state/key-value.ts';
import { postgresObjects } from '../../../src/store/postgres/state/objects.ts';
import { postgresWorkflowStore } from '../../../src/store/postgres/workflow/store.ts';
import { emptyPostgres, POSTGRES_MISSING, POSTGRES_PROGRAMS } from '../../support/postgres.ts';
import { describeClients } from '../suites/clients.ts';
import type { OpenDriver } from '../suites/driver.ts';
import { describeHosts } from '../suites/hosts.ts';
import { describeKeyValue } from '../suites/key-value.ts';
import { describeObjects } from '../suites/objects.ts';
import { describeRefreshTokens } from '../suites/refresh-tokens.ts';
import { describeWebhookInbox } from '../suites/webhook-inbox.ts';
import { describeWebhookSecrets } from '../suites/webhook-secrets.ts';
import { describeWorkflow } from '../suites/workflow.ts';

/** One migrated database per data folder, as the suites expect. */
const urls = new Map<string, Promise<string>>();

async function migratedPostgres(): Promise<string> {
  const url = await emptyPostgres();
  const database = new PostgresDatabase({ url, logger: silentLogger, applicationName: 'svc-test' });
  await migratePostgres(database);
  await database.close();
  return url;
}

function opened<Port>(open: (database: PostgresDatabase, clock: Clock) => Port): OpenDriver<Port> {
  return async ({ dataDir, clock }) => {
    if (!urls.has(dataDir)) urls.set(dataDir, migratedPostgres());
    const url = await urls.get(dataDir)!;
    const database = new PostgresDatabase({ url, logger: silentLogger, applicationName: 'svc-test' });
    return { port: open(database, clock), close: () => database.close() };
  };
}

describe.skipIf(!POSTGRES_PROGRAMS)(POSTGRES_PROGRAMS ? 'PostgreSQL' : POSTGRES_MISSING, () => {
  describeKeyValue(
    'postgres cache',
    opened((database, clock) => new PostgresKeyValue(database, 'cacheEntry', clock)),
  );
  describeKeyValue(
    'postgres state',
    opened((database, clock) => new PostgresKeyValue(database, 'stateEntry', clock)),
  );
  describeObjects(
    'postgres',
    opened((database, clock) => postgresObjects(database, { quotaBytes: 10_000_000, clock })),
  );
  describeWebhookSecrets('postgres', opened(postgresWebhookSecrets));
  describeWebhookInbox(
    'postgres',
    opened((database, clock) => new PostgresWebhookInbox(database, { clock, logger: silentLogger })),
    { shared: true },
  );
  describeWorkflow('postgres', opened(postgresWorkflowStore));
  describeClients('postgres', opened(postgresClients));
  describeRefreshTokens('postgres', opened(postgresRefreshTokens));
  describeHosts(
    'postgres',
    opened((database, clock) => ({
      hosts: postgresHosts(database),
      clients: postgresClients(database),
      refreshTokens: postgresRefreshTokens(database, clock),
      revocations: postgresRevocations(database),
      mintedTokens: postgresMintedTokens(database),
    })) as never,
  );
});
