/**
 * Credentials that the operator, a script or a host agent exchanges for tokens. Times in epoch ms. @spec Client
 * credentials
 */
export interface ClientRecord {
  clientId: string;
  hostId: string;
  namespaceId: string;
  name: string;
  /** scrypt hash of the secret's SHA-256 digest, with the scrypt parameters and the salt. */
  secretHash: string;
  createdAt: number;
  revokedAt: number | null;
}

export interface ClientStore {
  create(client: ClientRecord): Promise<void>;
  /**
   * Creates the client, or replaces its secret and identity. The supervisor calls it with the operator's
   * credentials at each start.
   */
  upsert(client: ClientRecord): Promise<void>;
  find(clientId: string): Promise<ClientRecord | undefined>;
  list(namespaceId?: string): Promise<ClientRecord[]>;
  /** Replaces the secret hash only if the stored hash still equals `from`. */
  rehash(clientId: string, from: string, to: string): Promise<void>;
  /** Returns false when the client was unknown or already revoked. */
  revoke(clientId: string, now: number): Promise<boolean>;
}
