import type { StoredObject } from '../../contracts/index.ts';

/** Tenant and namespace that own an object. Callers of other scopes cannot see the object. */
export interface ObjectScope {
  tenant: string;
  namespace: string;
}

/**
 * Bytes by scope and key. A write is atomic, and durable when its promise settles. Keys are validated by the
 * caller (see object-keys.ts). Throws STORE_ERROR; a remote store also throws UPSTREAM_UNAVAILABLE and
 * UPSTREAM_TIMEOUT.
 */
export interface ObjectStore {
  read(scope: ObjectScope, key: string): Promise<(StoredObject & { data: Uint8Array }) | undefined>;
  /** Writes or replaces an object. Throws QUOTA_EXCEEDED when the write would exceed the scope's quota. */
  write(scope: ObjectScope, key: string, data: Uint8Array): Promise<void>;
  /** Returns true when the object existed. */
  delete(scope: ObjectScope, key: string): Promise<boolean>;
  stat(scope: ObjectScope, key: string): Promise<StoredObject | undefined>;
  /**
   * Returns at most `limit` objects whose key starts with `prefix` and sorts after `after`, in UTF-8 byte
   * order.
   */
  list(
    scope: ObjectScope,
    options: { prefix: string; after?: string | undefined; limit: number },
  ): Promise<StoredObject[]>;
  close(): Promise<void>;
}
