/** A refresh token, of which only the hash is stored. All tokens that descend from one login form a family. */
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
   * Replaces a refresh token atomically. A second call within `graceMs` gets another new token (`repeated`), because
   * the first reply might have been lost. Later calls get `reused`. Expired and revoked tokens give `unknown`.
   */
  rotate(tokenHash: string, next: RefreshTokenRecord, now: number, graceMs: number): Promise<RotationOutcome>;
  /** Revokes all tokens that descend from one login. Returns the number of revoked tokens. */
  revokeFamily(familyId: string): Promise<number>;
  revokeClient(clientId: string): Promise<number>;
  prune(expiredBefore: number): Promise<number>;
}
