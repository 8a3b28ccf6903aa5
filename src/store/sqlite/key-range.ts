import { prefixEnd } from '../prefix-end.ts';

/** Exclusive upper bound for a range of texts. SQLite sorts every blob, even an empty one, after all texts. */
export const AFTER_ALL_TEXT = Buffer.alloc(0);

/**
 * Returns the first key of a scan, which is the larger of `prefix` and the smallest key above `after`. Keys contain no
 * U+0000, so the smallest key above `after` is `after` followed by U+0000.
 */
export function firstKey(prefix: string, after: string | undefined): string {
  if (after === undefined) return prefix;
  const next = `${after}\0`;
  return Buffer.compare(Buffer.from(next), Buffer.from(prefix)) > 0 ? next : prefix;
}

/**
 * Returns the exclusive end of the range of keys that start with `prefix`. A range query uses the primary key, while
 * LIKE would scan the whole table.
 */
export function endOfPrefix(prefix: string): string | Buffer {
  return prefixEnd(prefix) ?? AFTER_ALL_TEXT;
}
