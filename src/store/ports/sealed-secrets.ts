/** Values of the primary key by column. */
export type SealedKey = Readonly<Record<string, string | number>>;

/** Sealed values of a row by column. */
export type SealedValues = Readonly<Record<string, string | null>>;

export interface SealedRow {
  key: SealedKey;
  values: SealedValues;
}

export interface ResealedRow extends SealedRow {
  /**
   * Stored values from which the new values were made. If the row now contains different values, the row is not
   * replaced.
   */
  from: SealedValues;
}

/** Sealed values of the tables in `SEALED_COLUMNS`, for the rotation of the master key. */
export interface SealedSecretStore {
  /** Returns at most `limit` rows of a table after the key `last`, ordered by their keys. */
  after(table: string, last: SealedKey | null, limit: number): Promise<SealedRow[]>;
  /** Replaces values in one transaction. Returns the number of replaced rows. */
  replace(table: string, rows: readonly ResealedRow[]): Promise<number>;
  /** Returns the number of sealed values by the id of their master key. Keys of the gateway itself do not count. */
  countByKey(): Promise<Map<string, number>>;
  close(): Promise<void>;
}
