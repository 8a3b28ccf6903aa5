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
  /** Returns unexpired tokens, newest first. Without a namespace, the tokens of all namespaces are returned. */
  list(
    namespaceId: string | undefined,
    options: { now: number; limit: number; before?: string },
  ): Promise<MintedTokenRecord[]>;
  prune(expiredBefore: number, limit?: number): Promise<number>;
}
