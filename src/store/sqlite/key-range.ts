import { prefixEnd } from '../prefix-end.ts';

/** Exclusive upper bound of a text column. SQLite sorts blobs, even empty ones, after all texts. */
export const AFTER_ALL_TEXT = Buffer.alloc(0);

/**
 * Returns the first key of a scan: `prefix`, or the next key after `after`. Keys contain no U+0000, so appending it
 * gives the next possible key.
 */
export function firstKey(prefix: string, after: string | undefined): string {
  if (after === undefined) return prefix;
  const next = `${after}\0`;
  return Buffer.compare(Buffer.from(next), Buffer.from(prefix)) > 0 ? next : prefix;
}

/**
 * Returns the exclusive end of the range of keys that start with `prefix`. A range uses the primary key; LIKE would
 * scan the table.
 */
export function endOfPrefix(prefix: string): string | Buffer {
  return prefixEnd(prefix) ?? AFTER_ALL_TEXT;
}
