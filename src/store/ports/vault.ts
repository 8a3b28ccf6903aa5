/** Identifies a secret of a tenant. */
export interface VaultKey {
  namespaceId: string;
  name: string;
}

/** A new version of a secret. */
export interface NewVaultVersion extends VaultKey {
  version: number;
  sealed: string;
  createdAt: number;
  createdBy: string;
  expiresAt: number | null;
}

/** A version of a secret without its value. */
export interface VaultVersion extends VaultKey {
  version: number;
  createdAt: number;
  createdBy: string;
  expiresAt: number | null;
  /** Time of the last recorded use of the version, in epoch ms. */
  lastUsedAt: number | null;
}

/** The newest version of a secret with its sealed value. */
export interface SealedVaultVersion extends VaultVersion {
  sealed: string;
}

export interface VaultStore {
  /**
   * Adds a version and deletes the values of earlier ones, of which the newest `keep` stay listed. Returns false if
   * the version exists, because another caller was faster.
   */
  add(next: NewVaultVersion, keep: number): Promise<boolean>;
  /** Returns the newest version. */
  find(key: VaultKey): Promise<SealedVaultVersion | undefined>;
  /** Returns all versions, by name, newest first. */
  list(namespaceId: string): Promise<VaultVersion[]>;
  /** Deletes all versions. Returns whether there was one. */
  revoke(key: VaultKey): Promise<boolean>;
  /** Records a use of a version. */
  used(key: VaultKey & { version: number }, at: number): Promise<void>;
  /**
   * Returns the newest versions that expire before the time, soonest first, at most `limit`. Without a namespace, those
   * of all namespaces.
   */
  expiring(before: number, limit: number, namespaceId?: string): Promise<VaultVersion[]>;
}
