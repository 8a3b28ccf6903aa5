import type { StoredObject } from '../../contracts/index.ts';

/** Tenant and namespace that own an object. Callers of other tenants and namespaces cannot see the object. */
export interface ObjectScope {
  tenant: string;
  namespace: string;
}

/**
 * Object store by scope and key. Callers must validate keys with `requireObjectKey`. A write is atomic, and is durable
 * when its promise resolves.
 */
export interface ObjectStore {
  read(scope: ObjectScope, key: string): Promise<(StoredObject & { data: Uint8Array }) | undefined>;
  /** Creates or replaces an object. Throws QUOTA_EXCEEDED when the scope has too little space left. */
  write(scope: ObjectScope, key: string, data: Uint8Array): Promise<void>;
  /** Deletes an object. Returns true if the object existed. */
  delete(scope: ObjectScope, key: string): Promise<boolean>;
  stat(scope: ObjectScope, key: string): Promise<StoredObject | undefined>;
  /**
   * Returns at most `limit` objects whose key starts with `prefix` and sorts after `after`. Keys are ordered by their
   * UTF-8 bytes.
   */
  list(
    scope: ObjectScope,
    options: { prefix: string; after?: string | undefined; limit: number },
  ): Promise<StoredObject[]>;
  close(): Promise<void>;
}
