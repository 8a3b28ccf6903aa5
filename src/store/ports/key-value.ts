/** Anything JSON can carry. */
export type JsonValue = string | number | boolean | null | JsonValue[] | { [name: string]: JsonValue };

export interface KeyValueEntry {
  key: string;
  value: JsonValue;
  /** Epoch ms; null: stays. */
  expiresAt: number | null;
}

/**
 * Values by scope and key, with an optional life time: the platform cache of the gateway and the
 * entries of the state daemon. Every method is atomic, and a write's promise settles once it is durable.
 * An entry is gone from the millisecond of its `expiresAt` on.
 */
export interface KeyValueStore {
  get(scope: string, key: string): Promise<KeyValueEntry | undefined>;
  set(scope: string, key: string, value: JsonValue, ttlMs?: number): Promise<void>;
  /** True when it wrote: of racing callers, one. */
  setIfAbsent(scope: string, key: string, value: JsonValue, ttlMs?: number): Promise<boolean>;
  /** True when there was something to delete. */
  delete(scope: string, key: string): Promise<boolean>;
  /**
   * Adds `by` to a counter, absent meaning 0. With `windowMs` the counter lives from its first increment
   * until the window ends; later increments do not prolong it. Throws CONFLICT when the value is no number.
   */
  increment(scope: string, key: string, options: { by: number; windowMs?: number }): Promise<{ value: number; expiresAt: number | null }>;
  /** Entries whose key starts with `prefix` and comes after `after`, in key order, at most `limit`. */
  scan(scope: string, options: { prefix: string; after?: string; limit: number }): Promise<KeyValueEntry[]>;
  /** Deletes at most `limit` expired entries and returns how many, so that a sweep never holds the writer long. */
  sweep(limit: number): Promise<number>;
}
