import { PlatformError } from '../../kit/errors/errors.ts';

/** Any JSON value. */
export type JsonValue = string | number | boolean | null | JsonValue[] | { [name: string]: JsonValue };

export interface KeyValueEntry {
  key: string;
  value: JsonValue;
  /** Expiry time in epoch ms; null if the entry never expires. */
  expiresAt: number | null;
}

/** Size limits of one scope. Expired entries count until they are deleted. */
export interface EntryQuota {
  /** Limit for keys and values (as JSON) together, in UTF-8 bytes. */
  maxBytes: number;
  maxKeys: number;
  /** The config section that sets both limits, for the error message. */
  setting: string;
}

/**
 * Values by scope and key; every method is atomic, and a write settles once it is durable. Throws VALIDATION_ERROR (see
 * requireStorableKey), and QUOTA_EXCEEDED for a write that grows beyond the quota.
 */
export interface KeyValueStore {
  get(scope: string, key: string): Promise<KeyValueEntry | undefined>;
  set(scope: string, key: string, value: JsonValue, ttlMs?: number, quota?: EntryQuota): Promise<void>;
  /** Returns true when this call wrote the entry. Of several racing callers, exactly one gets true. */
  setIfAbsent(
    scope: string,
    key: string,
    value: JsonValue,
    ttlMs?: number,
    quota?: EntryQuota,
  ): Promise<boolean>;
  /** Returns true when the entry existed. */
  delete(scope: string, key: string): Promise<boolean>;
  /**
   * Adds `by` to a counter; an absent one starts at 0. `windowMs` sets the TTL at the first increment; later
   * increments do not extend it. Throws CONFLICT when the value is not a number or the sum is not a safe
   * integer.
   */
  increment(
    scope: string,
    key: string,
    options: { by: number; windowMs?: number; quota?: EntryQuota },
  ): Promise<{ value: number; expiresAt: number | null }>;
  /**
   * Returns at most `limit` entries whose key starts with `prefix` and sorts after `after`, in code point
   * order (equal to UTF-8 byte order).
   */
  scan(scope: string, options: { prefix: string; after?: string; limit: number }): Promise<KeyValueEntry[]>;
  /**
   * Deletes at most `limit` expired entries and returns their number; the limit bounds how long a sweep holds
   * the writer.
   */
  sweep(limit: number): Promise<number>;
}

/**
 * Throws VALIDATION_ERROR for text with U+0000, which PostgreSQL refuses, or a lone surrogate: encoding
 * replaces it, which would merge distinct keys.
 */
export function requireStorableKey(...texts: string[]): void {
  if (texts.every((text) => text.isWellFormed() && !text.includes('\0'))) return;
  throw new PlatformError(
    'VALIDATION_ERROR',
    'A key and its scope must be well-formed Unicode without U+0000; encode binary keys, for example as base64url.',
  );
}
