import { PlatformError } from '../../kit/errors.ts';

/** Anything JSON can carry. */
export type JsonValue = string | number | boolean | null | JsonValue[] | { [name: string]: JsonValue };

export interface KeyValueEntry {
  key: string;
  value: JsonValue;
  /** Epoch ms; null: stays. */
  expiresAt: number | null;
}

/** What one scope may take. An expired entry counts until it is deleted. */
export interface EntryQuota {
  /** Of keys and values (as JSON), in UTF-8. */
  maxBytes: number;
  maxKeys: number;
  /** The section of the config that has both, for the error. */
  setting: string;
}

/**
 * Values by scope and key, with an optional life time: the platform cache of the gateway and the
 * entries of the state daemon. Every method is atomic, and a write's promise settles once it is durable.
 * An entry is gone from the millisecond of its `expiresAt` on. Every method throws VALIDATION_ERROR for a scope or
 * key that no database keeps apart from others (see requireStorableKey).
 * With a quota, a write that would exceed it throws QUOTA_EXCEEDED; one that needs no more room than before never does.
 */
export interface KeyValueStore {
  get(scope: string, key: string): Promise<KeyValueEntry | undefined>;
  set(scope: string, key: string, value: JsonValue, ttlMs?: number, quota?: EntryQuota): Promise<void>;
  /** True when it wrote: of racing callers, one. */
  setIfAbsent(
    scope: string,
    key: string,
    value: JsonValue,
    ttlMs?: number,
    quota?: EntryQuota,
  ): Promise<boolean>;
  /** True when there was something to delete. */
  delete(scope: string, key: string): Promise<boolean>;
  /**
   * Adds `by` to a counter, absent meaning 0; one that exists keeps its life time. With `windowMs` the counter lives from its first increment
   * until the window ends; later increments do not prolong it. Throws CONFLICT when the value is no number or the sum
   * leaves the range of exact integers.
   */
  increment(
    scope: string,
    key: string,
    options: { by: number; windowMs?: number; quota?: EntryQuota },
  ): Promise<{ value: number; expiresAt: number | null }>;
  /** Entries whose key starts with `prefix` and comes after `after`, in the order of their code points (that of UTF-8 bytes), at most `limit`. */
  scan(scope: string, options: { prefix: string; after?: string; limit: number }): Promise<KeyValueEntry[]>;
  /** Deletes at most `limit` expired entries and returns how many, so that a sweep never holds the writer long. */
  sweep(limit: number): Promise<number>;
}

/**
 * Throws VALIDATION_ERROR for text with U+0000 (PostgreSQL refuses it) or half a surrogate pair (encoding replaces it,
 * so that two keys would become one).
 */
export function requireStorableKey(...texts: string[]): void {
  if (texts.every((text) => text.isWellFormed() && !text.includes('\0'))) return;
  throw new PlatformError(
    'VALIDATION_ERROR',
    'A key and its scope must be well-formed Unicode without U+0000; encode binary keys, for example as base64url.',
  );
}
