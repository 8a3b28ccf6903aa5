import type { Logger } from '../../../kit/telemetry/logger.ts';
import type { Clock } from '../../../kit/time/clock.ts';
import type { GatewayStore } from '../../ports/index.ts';
import type { PostgresDatabase } from '../database.ts';
import { PostgresMembers } from '../members.ts';
import { PostgresKeyValue } from '../state/key-value.ts';
import { postgresClients } from './clients.ts';
import { postgresHosts } from './hosts.ts';
import { PostgresWebhookInbox } from './inbox/inbox.ts';
import { postgresRefreshTokens } from './refresh-tokens.ts';
import { postgresMintedTokens, postgresRevocations } from './revocations.ts';
import { postgresWebhookSecrets } from './webhook-secrets.ts';

export interface PostgresGatewayOptions {
  clock: Clock;
  logger: Logger;
  /** Replaces the clock of the database in tests. */
  leaseClock?: Clock;
}

/** The gateway's stores in PostgreSQL. Closing the store closes the database. */
export function postgresGatewayStore(
  database: PostgresDatabase,
  { clock, logger, leaseClock }: PostgresGatewayOptions,
): GatewayStore {
  const inbox = new PostgresWebhookInbox(database, { clock, logger });
  return {
    cache: new PostgresKeyValue(database, 'cacheEntry', clock),
    secrets: postgresWebhookSecrets(database, clock),
    inbox,
    clients: postgresClients(database),
    refreshTokens: postgresRefreshTokens(database, clock),
    hosts: postgresHosts(database),
    mintedTokens: postgresMintedTokens(database),
    revocations: postgresRevocations(database),
    members: new PostgresMembers(database, leaseClock),
    probe: () => database.probeReads(),
    async close() {
      await inbox.flush();
      await database.close();
    },
  };
}
