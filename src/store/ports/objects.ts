import type { StoredObject } from '../../contracts/index.ts';

/** Whose objects are meant: nobody sees those of another tenant or namespace. */
export interface ObjectScope {
  tenant: string;
  namespace: string;
}

/**
 * Bytes by scope and key. A write is whole or not at all, and durable when its promise settles. Keys have been checked
 * (see object-keys.ts). Throws STORE_ERROR, or UPSTREAM_UNAVAILABLE and UPSTREAM_TIMEOUT where the objects are elsewhere.
 */
export interface ObjectStore {
  read(scope: ObjectScope, key: string): Promise<(StoredObject & { data: Uint8Array }) | undefined>;
  /** Throws QUOTA_EXCEEDED where there is a quota. */
  write(scope: ObjectScope, key: string, data: Uint8Array): Promise<void>;
  /** True when there was something to delete. */
  delete(scope: ObjectScope, key: string): Promise<boolean>;
  stat(scope: ObjectScope, key: string): Promise<StoredObject | undefined>;
  /** Those whose key starts with `prefix` and comes after `after`, in the order of UTF-8 bytes, at most `limit`. */
  list(
    scope: ObjectScope,
    options: { prefix: string; after?: string | undefined; limit: number },
  ): Promise<StoredObject[]>;
  close(): Promise<void>;
}
