import { PlatformError } from '../kit/errors/errors.ts';
import type { Clock } from '../kit/time/clock.ts';
import type { EntryQuota } from './ports/index.ts';

/** Storage usage of one scope. Expired entries count until they are deleted. */
export interface EntryUsage {
  keys: number;
  bytes: number;
}

/** Returns the expiry time of a new entry in epoch ms. Returns null if no TTL is given. */
export function expiryOf(clock: Clock, ttlMs: number | undefined): number | null {
  return ttlMs === undefined ? null : Math.min(clock.now() + ttlMs, Number.MAX_SAFE_INTEGER);
}

/** Returns the value of a counter after an increment. Throws CONFLICT if the entry cannot be incremented. */
export function sumOf(key: string, before: unknown, by: number): number {
  if (typeof before !== 'number') {
    throw new PlatformError(
      'CONFLICT',
      `The entry '${key}' is not a number, so it cannot be incremented. Use another key or delete it first.`,
    );
  }
  const sum = before + by;
  if (Math.abs(sum) <= Number.MAX_SAFE_INTEGER) return sum;
  throw new PlatformError(
    'CONFLICT',
    `The counter '${key}' would exceed the range of safe integers. Delete it to start again.`,
  );
}

/**
 * Returns whether a write exceeds the quota of its scope. `replacedBytes` is the size of the replaced entry, or
 * undefined for a new key.
 */
export function exceedsQuota(
  { key, value }: { key: string; value: string },
  used: EntryUsage,
  replacedBytes: number | undefined,
  { maxBytes, maxKeys }: EntryQuota,
): boolean {
  const bytes = used.bytes - (replacedBytes ?? 0) + Buffer.byteLength(key) + Buffer.byteLength(value);
  const keys = used.keys + (replacedBytes === undefined ? 1 : 0);
  const grows = bytes > used.bytes || keys > used.keys;
  return grows && (bytes > maxBytes || keys > maxKeys);
}

export function quotaExceeded(
  key: string,
  used: EntryUsage,
  { maxBytes, maxKeys, setting }: EntryQuota,
): PlatformError {
  return new PlatformError(
    'QUOTA_EXCEEDED',
    `The entry '${key}' does not fit: the plugin has ${used.bytes} of ${maxBytes} bytes and ${used.keys} of ${maxKeys} keys in use for this tenant. Delete some entries, or raise ${setting}.maxBytes or ${setting}.maxKeys.`,
    { details: { bytes: used.bytes, maxBytes, keys: used.keys, maxKeys } },
  );
}
