import { LIMITS, type PlatformConfig } from '../../../contracts/index.ts';
import { PlatformError } from '../../../kit/errors/errors.ts';
import type { EntryQuota, JsonValue, KeyValueEntry, KeyValueStore } from '../../../store/ports/index.ts';

/** Tenant and namespace of an entry. Other tenants cannot see the entry. */
export interface Place {
  tenant: string;
  namespace: string;
}

export interface PutOptions {
  ttlMs?: number | undefined;
  ifAbsent: boolean;
}

export interface EntryPage {
  items: KeyValueEntry[];
  nextCursor: string | null;
}

export interface StateEntries {
  /** Returns an entry. Throws NOT_FOUND if the entry does not exist. */
  get(place: Place, key: string): Promise<KeyValueEntry>;
  /**
   * Stores an entry. Returns false if `ifAbsent` is set and the entry exists. Throws PAYLOAD_TOO_LARGE for a value that
   * is too large. Throws QUOTA_EXCEEDED if the write would exceed the quota.
   */
  put(place: Place, key: string, value: JsonValue, options: PutOptions): Promise<boolean>;
  delete(place: Place, key: string): Promise<boolean>;
  /**
   * Adds a number to the stored number. Throws CONFLICT if the entry is not a number. Throws QUOTA_EXCEEDED if a new
   * entry exceeds the quota.
   */
  increment: (
    place: Place,
    key: string,
    options: { by: number; windowMs?: number | undefined },
  ) => Promise<{ value: number; resetsAt: number | null }>;
  /**
   * Returns the entries whose keys have a prefix, in key order. The cursor is the last key of the previous page. A page
   * with large values can have fewer than `limit` entries.
   */
  list(
    place: Place,
    options: { prefix: string; cursor?: string | undefined; limit: number },
  ): Promise<EntryPage>;
}

/** Approximate maximum size of a page, in bytes. A thousand values of the maximum size would be 256 MB. */
const PAGE_BYTES = 4 * 1024 * 1024;
const ENTRIES_A_STEP = 32;

/** Suffix of `ctx.cache` namespaces. All other namespaces belong to `ctx.state`. */
const CACHE_NAMESPACE = ':cache';

export interface StateEntriesDeps {
  store: KeyValueStore;
  /** Store of `ctx.cache`. The default is `store`. */
  cache?: KeyValueStore | undefined;
  /** Quotas that apply to each namespace of each tenant. */
  quotas: PlatformConfig['state']['quotas'];
}

/** Creates the service for state entries. A write that would exceed its quota first deletes expired entries. */
export function createStateEntries({ store, cache = store, quotas }: StateEntriesDeps): StateEntries {
  function storeOf(place: Place): KeyValueStore {
    return isCache(place) ? cache : store;
  }

  function quotaOf(place: Place): EntryQuota {
    const kind = isCache(place) ? 'cache' : 'entries';
    return { ...quotas[kind], setting: `state.quotas.${kind}` };
  }

  return {
    async get(place, key) {
      const entry = await storeOf(place).get(scopeOf(place), key);
      if (entry) return entry;
      throw new PlatformError(
        'NOT_FOUND',
        `There is no entry '${key}' in the namespace '${place.namespace}'.`,
      );
    },
    async put(place, key, value, { ttlMs, ifAbsent }) {
      requireSize(key, value);
      const quota = quotaOf(place);
      if (ifAbsent) return storeOf(place).setIfAbsent(scopeOf(place), key, value, ttlMs, quota);
      await storeOf(place).set(scopeOf(place), key, value, ttlMs, quota);
      return true;
    },
    delete: (place, key) => storeOf(place).delete(scopeOf(place), key),
    async increment(place, key, { by, windowMs }) {
      const window = windowMs === undefined ? {} : { windowMs };
      const options = { by, ...window, quota: quotaOf(place) };
      const { value, expiresAt } = await storeOf(place).increment(scopeOf(place), key, options);
      return { value, resetsAt: expiresAt };
    },
    async list(place, { prefix, cursor, limit }) {
      const items: KeyValueEntry[] = [];
      for (let bytes = 0; ; ) {
        // One extra entry is read to detect a next page.
        const step = Math.min(ENTRIES_A_STEP, limit + 1 - items.length);
        const after = items.at(-1)?.key ?? cursor;
        const found = await storeOf(place).scan(scopeOf(place), {
          prefix,
          limit: step,
          ...(after === undefined ? {} : { after }),
        });
        items.push(...found);
        bytes += found.reduce((sum, { value }) => sum + sizeOf(value), 0);
        if (found.length < step) return { items, nextCursor: null };
        if (items.length > limit) items.pop();
        else if (bytes < PAGE_BYTES) continue;
        return { items, nextCursor: items.at(-1)!.key };
      }
    },
  };
}

function isCache({ namespace }: Place): boolean {
  return namespace.endsWith(CACHE_NAMESPACE);
}

/** Returns the store's scope as JSON. Any separator could also occur in the tenant or the namespace. */
function scopeOf({ tenant, namespace }: Place): string {
  return JSON.stringify([tenant, namespace]);
}

function sizeOf(value: JsonValue): number {
  return Buffer.byteLength(JSON.stringify(value));
}

function requireSize(key: string, value: JsonValue): void {
  const [bytes, maxBytes] = [sizeOf(value), LIMITS.stateValueBytes];
  if (bytes <= maxBytes) return;
  throw new PlatformError(
    'PAYLOAD_TOO_LARGE',
    `The value of '${key}' takes ${bytes} bytes as JSON; the limit is ${maxBytes}. Split it over several keys.`,
    { details: { bytes, maxBytes } },
  );
}
