/** Somebody who may exchange a secret for tokens: the operator, a script, a host agent. Times in epoch ms. @spec Client credentials */
export interface ClientRecord {
  clientId: string;
  hostId: string;
  namespaceId: string;
  name: string;
  /** scrypt of the secret's SHA-256, with its parameters and salt. */
  secretHash: string;
  createdAt: number;
  revokedAt: number | null;
}

export interface ClientStore {
  create(client: ClientRecord): Promise<void>;
  /** Creates it or replaces its secret and identity: how the operator's credentials come in at each start. */
  upsert(client: ClientRecord): Promise<void>;
  find(clientId: string): Promise<ClientRecord | undefined>;
  list(namespaceId?: string): Promise<ClientRecord[]>;
  /** Replaces the hash of a secret, unless it is no longer `from`. */
  rehash(clientId: string, from: string, to: string): Promise<void>;
  /** True when it was valid until now. */
  revoke(clientId: string, now: number): Promise<boolean>;
}

/** One refresh token, known by its hash. A family is all that descend from one login. */
export interface RefreshTokenRecord {
  tokenHash: string;
  familyId: string;
  clientId: string;
  createdAt: number;
  expiresAt: number;
  /** When it was traded in; null while unspent. */
  spentAt: number | null;
}

export type RotationOutcome = 'rotated' | 'repeated' | 'reused' | 'unknown';

export interface RefreshTokenStore {
  add(token: RefreshTokenRecord): Promise<void>;
  find(tokenHash: string): Promise<RefreshTokenRecord | undefined>;
  /**
   * Spends the old and adds the new in one step. Of racing callers one gets `rotated`; whoever comes within `graceMs` of
   * that gets `repeated`, the new one added all the same (its reply may have been lost); later it is `reused`, and
   * nothing is added. `unknown`: expired, or gone with its family.
   */
  rotate(tokenHash: string, next: RefreshTokenRecord, now: number, graceMs: number): Promise<RotationOutcome>;
  /** Revokes all that descend from one login; returns how many went. */
  revokeFamily(familyId: string): Promise<number>;
  revokeClient(clientId: string): Promise<number>;
  prune(expiredBefore: number): Promise<number>;
}
