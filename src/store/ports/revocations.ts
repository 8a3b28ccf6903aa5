/** A revoked token, or a revoked host together with all its tokens. Times are in epoch ms. */
export interface Revocation {
  /**
   * Number that increases with each revocation. Readers use it to fetch only the revocations that they have not seen.
   */
  sequence: number;
  kind: 'host' | 'token';
  /** Id of the host, or `jti` claim of the token. */
  subject: string;
  /** Time at which the token expires by itself. It is null for hosts, because their ids are never reused. */
  expiresAt: number | null;
}

export interface RevocationStore {
  /**
   * Revokes a host together with its clients, refresh tokens and minted tokens, in one transaction. Returns false when
   * the host was already revoked.
   */
  revokeHost(hostId: string, now: number): Promise<boolean>;
  /**
   * Records the revocation until `expiresAt`, when the token expires by itself. Returns false when the token was
   * already revoked.
   */
  revokeToken(jti: string, expiresAt: number, now: number): Promise<boolean>;
  /** Returns at most `limit` revocations above the sequence number, in ascending order. */
  since(sequence: number, limit: number): Promise<Revocation[]>;
  /** Returns the revocations of these hosts and tokens that are still stored. */
  find(subjects: readonly string[]): Promise<Revocation[]>;
  prune(expiredBefore: number): Promise<number>;
}
