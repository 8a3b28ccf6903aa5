/** A refresh token, of which only the hash is stored. All tokens that descend from one login form a family. */
export interface RefreshTokenRecord {
  tokenHash: string;
  familyId: string;
  clientId: string;
  createdAt: number;
  expiresAt: number;
  /** Time at which the token was exchanged for a new one, or null if it is still unused. */
  spentAt: number | null;
}

export type RotationOutcome = 'rotated' | 'repeated' | 'reused' | 'unknown';

export interface RefreshTokenStore {
  add(token: RefreshTokenRecord): Promise<void>;
  find(tokenHash: string): Promise<RefreshTokenRecord | undefined>;
  /**
   * Atomically replaces a token. A second caller within `graceMs` gets another new token (`repeated`), because the
   * first reply may have been lost. Later callers get `reused`. An expired or revoked token gives `unknown`.
   */
  rotate(tokenHash: string, next: RefreshTokenRecord, now: number, graceMs: number): Promise<RotationOutcome>;
  /** Revokes all tokens that descend from one login. Returns their number. */
  revokeFamily(familyId: string): Promise<number>;
  revokeClient(clientId: string): Promise<number>;
  prune(expiredBefore: number): Promise<number>;
}
