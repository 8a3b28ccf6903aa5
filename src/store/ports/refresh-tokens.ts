/** One refresh token, stored as a hash. A family holds all tokens that descend from one login. */
export interface RefreshTokenRecord {
  tokenHash: string;
  familyId: string;
  clientId: string;
  createdAt: number;
  expiresAt: number;
  /** When the token was exchanged; null while unspent. */
  spentAt: number | null;
}

export type RotationOutcome = 'rotated' | 'repeated' | 'reused' | 'unknown';

export interface RefreshTokenStore {
  add(token: RefreshTokenRecord): Promise<void>;
  find(tokenHash: string): Promise<RefreshTokenRecord | undefined>;
  /**
   * Atomically replaces the old token. A second caller within `graceMs` also gets a new token (`repeated`), since the
   * first reply may have been lost; later callers get `reused`. `unknown`: expired or revoked.
   */
  rotate(tokenHash: string, next: RefreshTokenRecord, now: number, graceMs: number): Promise<RotationOutcome>;
  /** Revokes all tokens that descend from one login; returns their number. */
  revokeFamily(familyId: string): Promise<number>;
  revokeClient(clientId: string): Promise<number>;
  prune(expiredBefore: number): Promise<number>;
}
