import type { ClientRecord } from './clients.ts';
import type { JsonValue } from './key-value.ts';

/** A machine that runs plugin handlers. Times are in epoch ms. @spec Host agent registration */
export interface HostRecord {
  hostId: string;
  clientId: string;
  namespaceId: string;
  name: string;
  /** The host's x25519 public key, encoded as base64. */
  publicKey: string;
  capabilities: string[];
  labels: Record<string, string>;
  metadata: Record<string, JsonValue>;
  createdAt: number;
  revokedAt: number | null;
  /** Id of the current connection's session, or null while the host is offline. */
  sessionId: string | null;
  connectedAt: number | null;
  lastSeenAt: number | null;
}

/** A connected host. `owner` is the fence token of the gateway process to which the host is connected. */
export interface ConnectedHost extends Pick<HostRecord, 'hostId' | 'capabilities' | 'labels'> {
  owner: number;
}

export interface HostStore {
  /** Writes the host and its login client in one transaction. */
  register(host: HostRecord, client: ClientRecord): Promise<void>;
  find(hostId: string): Promise<HostRecord | undefined>;
  /** Returns hosts ordered by id. Without a namespace, the hosts of all namespaces are returned. */
  list(namespaceId: string | undefined, options: { limit: number; after?: string }): Promise<HostRecord[]>;
  /**
   * Replaces the session of a host. `owner` is the fence of the member with the new connection. Returns true if the
   * previous session belongs to another member. A feed change then makes that member close the previous session.
   */
  connect(hostId: string, sessionId: string, now: number, owner?: number): Promise<boolean>;
  /** Records the time of a heartbeat. Returns false, and changes nothing, if the session was replaced. */
  seen(hostId: string, sessionId: string, now: number): Promise<boolean>;
  /** Ends the session. Ignores a replaced session, because the socket of a replaced session can close late. */
  disconnect(hostId: string, sessionId: string, now: number): Promise<void>;
  /**
   * Returns at most `limit` hosts of a namespace that are connected to members other than `own`. Orders the hosts by
   * id. With `hostId`, returns only this host.
   */
  connectedElsewhere(
    namespaceId: string,
    own: number,
    options: { limit: number; hostId?: string | undefined },
  ): Promise<ConnectedHost[]>;
  /** Ends sessions without an owner and sessions whose owner has ended. Returns the number of ended sessions. */
  disconnectEnded(now: number): Promise<number>;
}
