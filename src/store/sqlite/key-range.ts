import { prefixEnd } from '../prefix-end.ts';

/** Exclusive upper bound for all texts. SQLite sorts every blob after all texts. */
export const AFTER_ALL_TEXT = Buffer.alloc(0);

/**
 * Returns the inclusive lower bound for the keys that start with `prefix` and come after `after`. The bound can end
 * with U+0000, because keys never contain U+0000.
 */
export function firstKey(prefix: string, after: string | undefined): string {
  if (after === undefined) return prefix;
  const next = `${after}\0`;
  return Buffer.compare(Buffer.from(next), Buffer.from(prefix)) > 0 ? next : prefix;
}

/**
 * Returns the exclusive end of the range of keys that start with `prefix`. A range query uses the primary key, but LIKE
 * would scan the table.
 */
export function endOfPrefix(prefix: string): string | Buffer {
  return prefixEnd(prefix) ?? AFTER_ALL_TEXT;
}
