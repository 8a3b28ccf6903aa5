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

/** A token that an administrator issued manually. */
export interface MintedTokenRecord {
  jti: string;
  hostId: string;
  namespaceId: string;
  createdBy: string;
  createdAt: number;
  expiresAt: number;
  revokedAt: number | null;
}

export interface MintedTokenStore {
  add(token: MintedTokenRecord): Promise<void>;
  find(jti: string): Promise<MintedTokenRecord | undefined>;
  /** Returns unexpired tokens, newest first. Without a namespace, returns those of all namespaces. */
  list(
    namespaceId: string | undefined,
    options: { now: number; limit: number; before?: string },
  ): Promise<MintedTokenRecord[]>;
  prune(expiredBefore: number): Promise<number>;
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
