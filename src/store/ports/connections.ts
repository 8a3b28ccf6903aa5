export interface ConnectionKey {
  namespaceId: string;
  name: string;
}

/** Identifies one connection among all that ever had its name. */
export interface ConnectionId extends ConnectionKey {
  id: string;
}

/** The part of a connection that an authorization or a refresh replaces. Times are in epoch ms. */
export interface ConnectionState {
  status: 'pending' | 'active' | 'failed' | 'revoked';
  /** Tokens, encrypted with the master key. */
  sealedTokens: string | null;
  /** JSON array, or null if the provider does not name the granted scopes. */
  grantedScopes: string | null;
  account: string | null;
  authorizedAt: number | null;
  /** Expiry of the access token. */
  expiresAt: number | null;
  /** Time of the next refresh, or null if nothing can be refreshed. */
  refreshAt: number | null;
  lastRefreshedAt: number | null;
  /** JSON. */
  lastError: string | null;
  /** Consecutive failed refreshes. */
  failures: number;
}

export interface ConnectionRecord extends ConnectionId, ConnectionState {
  /** JSON. Contains no secret. */
  settings: string;
  /** Client secret, encrypted with the master key. */
  sealedSecret: string | null;
  createdAt: number;
}

/** The part of a connection that an administrator sets. */
export type ConnectionConfig = Pick<ConnectionRecord, 'settings' | 'sealedSecret'>;

export interface LeasedConnection extends ConnectionRecord {
  /** Whether the holder of the previous lease did not settle it, because it was killed or lost the store. */
  wasInterrupted: boolean;
}

/** OAuth 2 connections. @spec docs/connections.md */
export interface ConnectionStore {
  /** Stores a new connection. Returns false if the name is taken. */
  create(record: ConnectionRecord): Promise<boolean>;
  find(key: ConnectionKey): Promise<ConnectionRecord | undefined>;
  /** Replaces the configuration if it is still `from`. The state and a lease stay. Returns whether it was replaced. */
  configure(id: ConnectionId, next: ConnectionConfig, from: ConnectionConfig): Promise<boolean>;
  /** Returns the connections of a namespace, ordered by name. */
  list(namespaceId: string): Promise<ConnectionRecord[]>;
  /** Returns connections of all namespaces that failed, or whose access token expires before `expiresBefore`. */
  troubled(expiresBefore: number): Promise<ConnectionRecord[]>;
  /** Returns at most `limit` connections whose refresh is due, earliest first. */
  due(now: number, limit: number): Promise<ConnectionId[]>;
  /**
   * Gives the caller alone the right to refresh. `lease` is a random text. Returns undefined while another lease holds,
   * or if the connection no longer exists. Leases are measured with the clock of the store.
   */
  lease(id: ConnectionId, lease: string, leaseMs: number): Promise<LeasedConnection | undefined>;
  /**
   * Replaces the state and ends any lease. With `lease`, the state is only replaced while this lease was not given to
   * another caller. Returns whether the state was replaced.
   */
  settle(id: ConnectionId, state: ConnectionState, lease?: string): Promise<boolean>;
  /** Records why an authorization failed. A connection without tokens fails; another one keeps its status. */
  noteRefusal(id: ConnectionId, lastError: string): Promise<boolean>;
  /** Returns whether this call removed the connection. */
  remove(id: ConnectionId): Promise<boolean>;
}
