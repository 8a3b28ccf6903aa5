/**
 * Refresh token. The store contains only the hash of the token. All tokens that descend from one login form a family.
 */
export interface RefreshTokenRecord {
  tokenHash: string;
  familyId: string;
  clientId: string;
  createdAt: number;
  expiresAt: number;
  /** Time at which the token was exchanged for a new token, or null if the token is unused. */
  spentAt: number | null;
}

export type RotationOutcome = 'rotated' | 'repeated' | 'reused' | 'unknown';

export interface RefreshTokenStore {
  add(token: RefreshTokenRecord): Promise<void>;
  find(tokenHash: string): Promise<RefreshTokenRecord | undefined>;
  /**
   * Replaces a refresh token with `next` atomically. Repeated calls within `graceMs` also succeed, because the first
   * reply might have been lost. Later calls return `reused`.
   */
  rotate(tokenHash: string, next: RefreshTokenRecord, now: number, graceMs: number): Promise<RotationOutcome>;
  /** Revokes all tokens of one login and returns their number. */
  revokeFamily(familyId: string): Promise<number>;
  revokeClient(clientId: string): Promise<number>;
  prune(expiredBefore: number, limit?: number): Promise<number>;
}
