import type { SecretKey } from './webhook-secrets.ts';

/** Encrypted values of a webhook secret, including an expired previous value. */
export interface SealedRow extends SecretKey {
  current: string;
  previous: string | null;
}

export interface ResealedRow extends SealedRow {
  /**
   * Stored values from which the new values were made. If the row now contains different values, the row is not
   * replaced.
   */
  from: { current: string; previous: string | null };
}

/** Encrypted webhook secrets, for the rotation of the master key. */
export interface SealedSecretStore {
  /** Returns at most `limit` rows after `last`, ordered by their keys. */
  after(last: SecretKey | null, limit: number): Promise<SealedRow[]>;
  /** Replaces values in one transaction. Returns the number of replaced rows. */
  replace(rows: readonly ResealedRow[]): Promise<number>;
  /** Returns the number of encrypted webhook secrets by the id of their master key. Keys of the gateway do not count. */
  countByKey(): Promise<Map<string, number>>;
  close(): Promise<void>;
}
