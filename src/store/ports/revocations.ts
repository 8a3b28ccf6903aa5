/** A revoked token, or a revoked host together with all its tokens. Times are in epoch ms. */
export interface Revocation {
  /** Number that increases with each revocation. Readers pass the last known number to fetch only newer revocations. */
  sequence: number;
  kind: 'host' | 'token';
  /** Id of the host, or `jti` claim of the token. */
  subject: string;
  /** Expiry time of the token. Null for a host, because host ids are never reused. */
  expiresAt: number | null;
}

export interface RevocationStore {
  /**
   * Revokes a host with its clients, refresh tokens and minted tokens in one transaction. Returns false if the host was
   * already revoked.
   */
  revokeHost(hostId: string, now: number): Promise<boolean>;
  /**
   * Records the revocation until `expiresAt`, when the token expires by itself. Returns false when the token was
   * already revoked.
   */
  revokeToken(jti: string, expiresAt: number, now: number): Promise<boolean>;
  /** Returns at most `limit` revocations above the sequence number, in ascending order. */
  since(sequence: number, limit: number): Promise<Revocation[]>;
  /** Returns the stored revocations of the given hosts and tokens. */
  find(subjects: readonly string[]): Promise<Revocation[]>;
  prune(expiredBefore: number, limit?: number): Promise<number>;
}
