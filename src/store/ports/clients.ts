/**
 * Client credentials of the operator, a script or a host agent. Clients exchange the credentials for tokens. Times are
 * in epoch ms. @spec Client credentials
 */
export interface ClientRecord {
  clientId: string;
  hostId: string;
  namespaceId: string;
  name: string;
  /** Result of scrypt over the SHA-256 digest of the secret. Includes the scrypt parameters and the salt. */
  secretHash: string;
  createdAt: number;
  revokedAt: number | null;
}

export interface ClientStore {
  create(client: ClientRecord): Promise<void>;
  /**
   * Creates a client. If the client exists, replaces its secret and identity. At each start, the supervisor upserts the
   * operator's client.
   */
  upsert(client: ClientRecord): Promise<void>;
  find(clientId: string): Promise<ClientRecord | undefined>;
  list(namespaceId?: string): Promise<ClientRecord[]>;
  /** Replaces the secret hash only if the stored hash still equals `from`. */
  rehash(clientId: string, from: string, to: string): Promise<void>;
  /** Revokes a client. Returns false if the client is unknown or was already revoked. */
  revoke(clientId: string, now: number): Promise<boolean>;
}
