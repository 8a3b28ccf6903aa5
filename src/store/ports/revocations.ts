/** A revoked host (with all its tokens) or a single revoked token. Times in epoch ms. */
export interface Revocation {
  /** Increases with each revocation, so that a process can read only revocations it has not seen. */
  sequence: number;
  kind: 'host' | 'token';
  /** The host's id, or the token's `jti`. */
  subject: string;
  /** When the token expires by itself; null for hosts, whose ids are never reused. */
  expiresAt: number | null;
}

export interface RevocationStore {
  /**
   * Revokes a host in one transaction: its record, every client with that id, their refresh tokens and all
   * tokens that name it. Returns false when it was already revoked.
   */
  revokeHost(hostId: string, now: number): Promise<boolean>;
  /** Revokes one token until it expires by itself. Returns false when it was already revoked. */
  revokeToken(jti: string, expiresAt: number, now: number): Promise<boolean>;
  /** Returns revocations whose number is above `sequence`, in ascending order. */
  since(sequence: number, limit: number): Promise<Revocation[]>;
  prune(expiredBefore: number): Promise<number>;
}
