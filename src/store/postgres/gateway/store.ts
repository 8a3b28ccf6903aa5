import type { Logger } from '../../../kit/telemetry/logger.ts';
import type { Clock } from '../../../kit/time/clock.ts';
import { FEED_SCOPES, type FeedTopic, type GatewayStore } from '../../ports/index.ts';
import type { PostgresDatabase } from '../database.ts';
import { PostgresMonitor } from '../database-health.ts';
import { PostgresMembers } from '../members.ts';
import { type AnnounceChange, PostgresKeyValue } from '../state/key-value.ts';
import { postgresAccess } from './access.ts';
import { postgresAlerts } from './alerts/alerts.ts';
import { postgresAudit } from './audit.ts';
import { postgresClients } from './clients.ts';
import { postgresConnections } from './connections.ts';
import { PostgresFeed } from './feed.ts';
import { postgresHosts } from './hosts.ts';
import { PostgresWebhookInbox } from './inbox/inbox.ts';
import { SpillingInbox, type SpillOptions } from './inbox/spilling-inbox.ts';
import { postgresOutgoingEndpoints } from './messages/endpoints.ts';
import { PostgresMessages } from './messages/messages.ts';
import { PostgresQueues } from './queues/queues.ts';
import { postgresRefreshTokens } from './refresh-tokens.ts';
import { postgresRefusedRequests } from './refused-requests.ts';
import { postgresMintedTokens, postgresRevocations } from './revocations.ts';
import { postgresVault } from './vault.ts';
import { postgresWebhookSecrets } from './webhook-secrets.ts';

export interface PostgresGatewayOptions {
  clock: Clock;
  logger: Logger;
  /** Replaces the clock of the database in tests. */
  leaseClock?: Clock | undefined;
  /** Options for storing deliveries on the local disk while PostgreSQL is unreachable. */
  spill?: SpillOptions | undefined;
}

/** The gateway's stores in PostgreSQL. Closing the store closes the database. */
export function postgresGatewayStore(
  database: PostgresDatabase,
  { clock, logger, leaseClock, spill }: PostgresGatewayOptions,
): GatewayStore {
  const feed = new PostgresFeed(database.reserved, leaseClock);
  const inbox = spill
    ? new SpillingInbox(database, { clock, logger, leaseClock, spill })
    : new PostgresWebhookInbox(database, { clock, logger, leaseClock });
  return {
    cache: postgresCache(database, { feed, leaseClock }),
    secrets: postgresWebhookSecrets(database, clock, feed),
    vault: postgresVault(database),
    inbox,
    refusedRequests: postgresRefusedRequests(database),
    clients: postgresClients(database),
    refreshTokens: postgresRefreshTokens(database, clock),
    hosts: postgresHosts(database, feed),
    mintedTokens: postgresMintedTokens(database),
    access: postgresAccess(database, feed),
    audit: postgresAudit(database),
    revocations: postgresRevocations(database, feed),
    members: new PostgresMembers(database.reserved, leaseClock),
    feed,
    alerts: postgresAlerts(database),
    queues: new PostgresQueues(database, feed, leaseClock),
    connections: postgresConnections(database, leaseClock),
    endpoints: postgresOutgoingEndpoints(database, feed),
    messages: new PostgresMessages(database),
    monitor: new PostgresMonitor(database),
    probe: () => database.reserved.probeReads(),
    async close() {
      await inbox.close();
      await database.close();
    },
  };
}

/** Opens the platform cache. Without `feed`, running nodes do not notice changes of the cache. */
export function postgresCache(
  database: PostgresDatabase,
  { feed, leaseClock }: Pick<PostgresGatewayOptions, 'leaseClock'> & { feed?: PostgresFeed } = {},
): GatewayStore['cache'] {
  return new PostgresKeyValue(database, 'cacheEntry', {
    leaseClock,
    announcer: feed && announceScopes(feed),
  });
}

/** Returns a lookup from a scope to the function that adds changes of the scope to the feed. */
function announceScopes(feed: PostgresFeed): (scope: string) => AnnounceChange | undefined {
  const topics = new Map<string, FeedTopic>(Object.entries(FEED_SCOPES));
  return (scope) => {
    const topic = topics.get(scope);
    return topic && ((query, key) => feed.add(query, topic, key));
  };
}
