import type { SecretKey } from './webhook-secrets.ts';

/** The encrypted values of one row, whether they have expired or not. */
export interface SealedRow extends SecretKey {
  current: string;
  previous: string | null;
}

export interface ResealedRow extends SealedRow {
  /** The values that were read: a row that has changed since is left as it is. */
  from: { current: string; previous: string | null };
}

/** Access to encrypted values for a rotation of the master key. */
export interface SealedSecretStore {
  /** The next rows in key order. */
  after(last: SecretKey | null, limit: number): Promise<SealedRow[]>;
  /** Replaces the values in one transaction. Returns the number of rows replaced. */
  replace(rows: readonly ResealedRow[]): Promise<number>;
  /** Number of encrypted values by id of their master key. */
  countByKey(): Promise<Map<string, number>>;
  close(): Promise<void>;
}
