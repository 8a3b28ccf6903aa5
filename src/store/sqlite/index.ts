import { join } from 'node:path';
import type { Logger } from '../../kit/telemetry/logger.ts';
import type { Clock } from '../../kit/time/clock.ts';
import {
  FEED_SCOPES,
  type FeedTopic,
  type GatewayStore,
  type ObjectStore,
  type StateStore,
} from '../ports/index.ts';
import { openDatabase } from './database.ts';
import { sqliteMembers } from './members.ts';
import { sqliteKeyValue } from './state/key-value.ts';
import { entryQuotas } from './state/key-value-quota.ts';
import { fileObjects } from './state/object-store.ts';
import { STATE_MIGRATIONS } from './state/schema.ts';
import { threadedVectorStore } from './state/vectors-thread.ts';
import { sqliteAccess } from './svc/access.ts';
import { sqliteAlerts } from './svc/alerts/alerts.ts';
import { auditWriter, sqliteAudit } from './svc/audit.ts';
import { sqliteClients } from './svc/clients.ts';
import { sqliteConnections } from './svc/connections.ts';
import { type AddToFeed, feedWriter, sqliteFeed } from './svc/feed.ts';
import { sqliteHosts } from './svc/hosts.ts';
import { sqliteOutgoingEndpoints } from './svc/messages/endpoints.ts';
import { sqliteMessages } from './svc/messages/messages.ts';
import { sqliteMintedTokens } from './svc/minted-tokens.ts';
import { sqliteQueues } from './svc/queues/queues.ts';
import { sqliteRefreshTokens } from './svc/refresh-tokens.ts';
import { sqliteRefusedRequests } from './svc/refused-requests.ts';
import { sqliteRevocations } from './svc/revocations.ts';
import { GATEWAY_MIGRATIONS } from './svc/schema.ts';
import { sqliteVault } from './svc/vault.ts';
import { type SqliteInbox, type SqliteInboxDeps, sqliteWebhookInbox } from './svc/webhook-inbox.ts';
import { sqliteWebhookSecrets } from './svc/webhook-secrets.ts';

export { type Database, type DatabaseOptions, openDatabase } from './database.ts';
export type { Owner } from './lock-owner.ts';
export type { Migrations } from './migrate.ts';
export { acquireOwnerLock, type OwnerLock, type OwnerLockOptions } from './owner-lock.ts';
export { SqliteRateCounters, type SqliteRateCountersOptions } from './rate-counters.ts';
export { threadedVectorIndex, threadedVectorStore } from './state/vectors-thread.ts';
export { sqliteWorkflowStore, WORKFLOW_FILE } from './workflow/store.ts';

export interface SqliteStoreOptions {
  /** Path of the data folder. A missing folder is created with mode 0700. */
  dataDir: string;
  clock: Clock;
  logger: Logger;
  /**
   * Whether other processes also write to the file, true by default. If false, some lookups use memory instead of the
   * file.
   */
  shared?: boolean;
  /**
   * Whether to recover the journal of an earlier process, true by default. Only one process per file is allowed to
   * recover the journal.
   */
  recovers?: boolean;
  /** Whether one or several processes use the file, `one` by default. */
  members?: SqliteInboxDeps['members'];
  /** Size limits of the journal. The limits apply only if the file is not shared. */
  segments?: SqliteInboxDeps['segments'];
}

/**
 * Name of the folder for object contents within the data folder. Only the process that owns `state.db` uses the folder.
 */
export const OBJECTS_FOLDER = 'storage';

/**
 * Page size of `svc.db`. A page of 8 KB fits three deliveries of 2 KB. With 4 KB pages, storing a delivery took 50 %
 * longer.
 */
export const DELIVERY_PAGE_BYTES = 8192;

/** Opens `svc.db`. Several processes can open the file at once. Throws STORE_ERROR if the file cannot be used. */
export async function sqliteGatewayStore({
  dataDir,
  clock,
  logger,
  shared = true,
  recovers = true,
  members,
  segments,
}: SqliteStoreOptions): Promise<GatewayStore> {
  const db = await openDatabase({
    file: join(dataDir, 'svc.db'),
    migrations: GATEWAY_MIGRATIONS,
    logger,
    pageBytes: DELIVERY_PAGE_BYTES,
    // Queries wait for the syncs of their own process only.
    syncBeside: !shared,
  });
  let inbox: SqliteInbox;
  try {
    inbox = await sqliteWebhookInbox(db, { clock, logger, shared, recovers, members, segments });
  } catch (error) {
    await db.close();
    throw error;
  }
  const addToFeed = feedWriter(db, clock);
  return {
    cache: sqliteKeyValue(db, clock, { onChange: announceScopes(addToFeed) }),
    secrets: sqliteWebhookSecrets(db, clock, addToFeed),
    vault: sqliteVault(db),
    inbox,
    refusedRequests: sqliteRefusedRequests(db),
    clients: sqliteClients(db),
    refreshTokens: sqliteRefreshTokens(db, clock),
    hosts: sqliteHosts(db, addToFeed),
    mintedTokens: sqliteMintedTokens(db),
    access: sqliteAccess(db, addToFeed, auditWriter(db)),
    audit: sqliteAudit(db),
    revocations: sqliteRevocations(db, addToFeed),
    members: sqliteMembers(db, clock),
    alerts: sqliteAlerts(db),
    queues: sqliteQueues(db, clock, addToFeed),
    connections: sqliteConnections(db, clock),
    endpoints: sqliteOutgoingEndpoints(db, addToFeed),
    messages: sqliteMessages(db, inbox.commit),
    feed: sqliteFeed(db, clock),
    probe: () => db.read(() => db.pragma('schema_version')),
    async close() {
      await inbox.close();
      await db.close();
    },
  };
}

/** Returns a change listener. For scopes in FEED_SCOPES, the listener adds the changed key to the change feed. */
function announceScopes(addToFeed: AddToFeed): (scope: string, key: string) => void {
  const topics = new Map<string, FeedTopic>(Object.entries(FEED_SCOPES));
  return (scope, key) => {
    const topic = topics.get(scope);
    if (topic !== undefined) addToFeed(topic, key);
  };
}

/** Opens `state.db`, and `vectors.db` on first use. Throws STORE_ERROR if the file cannot be used. */
export async function sqliteStateStore({ dataDir, clock, logger }: SqliteStoreOptions): Promise<StateStore> {
  const db = await openDatabase({ file: join(dataDir, 'state.db'), migrations: STATE_MIGRATIONS, logger });
  const vectors = threadedVectorStore({ dataDir, clock });
  let objects: ObjectStore | undefined;
  return {
    entries: sqliteKeyValue(db, clock, { requireQuota: entryQuotas(db) }),
    openObjects(options) {
      objects = fileObjects({ db, folder: join(dataDir, OBJECTS_FOLDER), clock, logger, ...options });
      return objects;
    },
    vectors,
    probe: () => db.write(() => {}),
    async close() {
      await vectors.close();
      await objects?.close();
      await db.close();
    },
  };
}
