/** What is refused from now on: every token of a host, or one token. Times in epoch ms. */
export interface Revocation {
  /** Grows with each revocation, so that a process can ask for what is new. */
  sequence: number;
  kind: 'host' | 'token';
  /** The host's id, or the token's `jti`. */
  subject: string;
  /** When the token expires by itself; null for hosts, whose ids are never given anew. */
  expiresAt: number | null;
}

/** A token that an administrator minted by hand. */
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
  /** Those that have not expired, newest first; every namespace when none is given. */
  list(
    namespaceId: string | undefined,
    options: { now: number; limit: number; before?: string },
  ): Promise<MintedTokenRecord[]>;
  prune(expiredBefore: number): Promise<number>;
}

export interface RevocationStore {
  /**
   * Refuses a host in one step: the host's record, every client of that id, their refresh tokens and all tokens that
   * name it. False when it was refused before.
   */
  revokeHost(hostId: string, now: number): Promise<boolean>;
  /** Refuses one token until it expires by itself. False when it was refused before. */
  revokeToken(jti: string, expiresAt: number, now: number): Promise<boolean>;
  /** Those after `sequence`, in order. */
  since(sequence: number, limit: number): Promise<Revocation[]>;
  prune(expiredBefore: number): Promise<number>;
}
