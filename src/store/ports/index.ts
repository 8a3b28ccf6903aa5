import type { Random } from '../../kit/security/random.ts';
import type { AccessStore } from './access.ts';
import type { AlertStore } from './alerts.ts';
import type { AuditStore } from './audit.ts';
import type { ClientStore } from './clients.ts';
import type { ConnectionStore } from './connections.ts';
import type { FeedStore } from './feed.ts';
import type { HostStore } from './hosts.ts';
import type { KeyValueStore } from './key-value.ts';
import type { MemberStore } from './members.ts';
import type { MessageStore } from './messages.ts';
import type { MintedTokenStore } from './minted-tokens.ts';
import type { StoreMonitor } from './monitor.ts';
import type { ObjectStore } from './objects.ts';
import type { OutgoingEndpointStore } from './outgoing-endpoints.ts';
import type { PluginLockStore } from './plugin-lock.ts';
import type { QueueStore } from './queues.ts';
import type { RefreshTokenStore } from './refresh-tokens.ts';
import type { RefusedRequestStore } from './refused-requests.ts';
import type { RevocationStore } from './revocations.ts';
import type { VaultStore } from './vault.ts';
import type { VectorStore } from './vectors.ts';
import type { WebhookInbox } from './webhook-inbox.ts';
import type { WebhookSecretStore } from './webhook-secrets.ts';

export * from './access.ts';
export * from './alerts.ts';
export * from './audit.ts';
export * from './clients.ts';
export * from './connections.ts';
export * from './end-tasks.ts';
export * from './feed.ts';
export * from './hosts.ts';
export * from './hour-counts.ts';
export * from './key-value.ts';
export * from './members.ts';
export * from './messages.ts';
export * from './minted-tokens.ts';
export * from './monitor.ts';
export * from './object-keys.ts';
export * from './objects.ts';
export * from './outgoing-endpoints.ts';
export * from './pauses.ts';
export * from './plugin-lock.ts';
export * from './queues.ts';
export * from './rate-counters.ts';
export * from './refresh-tokens.ts';
export * from './refused-requests.ts';
export * from './revocations.ts';
export * from './sealed-columns.ts';
export * from './sealed-secrets.ts';
export * from './secret-approvals.ts';
export * from './shared-runs.ts';
export * from './vault.ts';
export * from './vectors.ts';
export * from './webhook-inbox.ts';
export * from './webhook-secrets.ts';
export * from './workflow.ts';
export * from './workflow-records.ts';
export * from './workflow-runs.ts';

/** The gateway's stores. SQLite keeps all of these stores in the file `svc.db`. */
export interface GatewayStore {
  cache: KeyValueStore;
  secrets: WebhookSecretStore;
  /** Secrets of tenants. */
  vault: VaultStore;
  inbox: WebhookInbox;
  refusedRequests: RefusedRequestStore;
  clients: ClientStore;
  refreshTokens: RefreshTokenStore;
  hosts: HostStore;
  mintedTokens: MintedTokenStore;
  access: AccessStore;
  audit: AuditStore;
  revocations: RevocationStore;
  members: MemberStore;
  feed: FeedStore;
  queues: QueueStore;
  alerts: AlertStore;
  connections: ConnectionStore;
  endpoints: OutgoingEndpointStore;
  messages: MessageStore;
  /** Undefined for SQLite. */
  monitor?: StoreMonitor;
  /**
   * Resolves when the database has answered a read. The probe does not write, because deliveries are accepted even if
   * the database rejects writes.
   */
  probe(): Promise<unknown>;
  /** Writes all queued data, then closes the store. */
  close(): Promise<void>;
}

/** The state service's stores. SQLite keeps all of these stores in the file `state.db`. */
export interface StateStore {
  entries: KeyValueStore;
  /** Undefined for SQLite. */
  monitor?: StoreMonitor;
  /** Opens the object store, in which each scope can store at most `quotaBytes`. Must be called only once. */
  openObjects(options: { quotaBytes: number; random: Random }): ObjectStore;
  vectors: VectorStore;
  /** Resolves when the database has accepted a write transaction. */
  probe(): Promise<unknown>;
  close(): Promise<void>;
}

/** Stores through which the nodes of a PostgreSQL database share their installed plugins. */
export interface SharedPluginStore {
  lock: PluginLockStore;
  members: MemberStore;
  /** Objects in the database, without a quota. */
  objects: ObjectStore;
  /** Resolves when the database has accepted a write transaction. */
  probe(): Promise<unknown>;
  close(): Promise<void>;
}
