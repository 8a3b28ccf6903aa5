import type { JsonValue } from '../../kit/data/json-value.ts';
import { PlatformError } from '../../kit/errors/errors.ts';

export type { JsonValue };

export interface KeyValueEntry {
  key: string;
  value: JsonValue;
  /** Expiry time in epoch ms, or null if the entry never expires. */
  expiresAt: number | null;
}

/** Size limits of one scope. Expired entries count until they are deleted. */
export interface EntryQuota {
  /** Maximum size of all keys and JSON values of the scope together, in UTF-8 bytes. */
  maxBytes: number;
  maxKeys: number;
  /** Name of the config section that sets both limits, for error messages. */
  setting: string;
}

/**
 * Key-value store with atomic methods. A write is durable when its promise settles. Throws VALIDATION_ERROR for invalid
 * keys. Writes throw QUOTA_EXCEEDED if they exceed the given quota.
 */
export interface KeyValueStore {
  get(scope: string, key: string): Promise<KeyValueEntry | undefined>;
  set(scope: string, key: string, value: JsonValue, ttlMs?: number, quota?: EntryQuota): Promise<void>;
  /** Writes an entry unless the key exists. Returns true for exactly one of several concurrent callers. */
  setIfAbsent(
    scope: string,
    key: string,
    value: JsonValue,
    ttlMs?: number,
    quota?: EntryQuota,
  ): Promise<boolean>;
  /** Deletes an entry. Returns true if the entry existed. */
  delete(scope: string, key: string): Promise<boolean>;
  /**
   * Adds `by` to a counter, which starts at 0. `windowMs` sets the expiry of a new counter only. Throws CONFLICT if the
   * stored value is not a number or the sum exceeds the range of safe integers.
   */
  increment(
    scope: string,
    key: string,
    options: { by: number; windowMs?: number; quota?: EntryQuota },
  ): Promise<{ value: number; expiresAt: number | null }>;
  /**
   * Returns at most `limit` entries whose key starts with `prefix` and sorts after `after`. Keys are ordered by their
   * UTF-8 bytes.
   */
  scan(scope: string, options: { prefix: string; after?: string; limit: number }): Promise<KeyValueEntry[]>;
  /** Deletes at most `limit` expired entries and returns their number. A small limit keeps the transaction short. */
  sweep(limit: number): Promise<number>;
}

/**
 * Throws VALIDATION_ERROR for U+0000, which PostgreSQL refuses, and for lone surrogates. UTF-8 encoding replaces lone
 * surrogates, so distinct keys would become equal.
 */
export function requireStorableKey(...texts: string[]): void {
  if (texts.every((text) => text.isWellFormed() && !text.includes('\0'))) return;
  throw new PlatformError(
    'VALIDATION_ERROR',
    'A key and its scope must be well-formed Unicode without U+0000; encode binary keys, for example as base64url.',
  );
}
