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

const LAST_CODE_POINT = 0x10ffff;

/**
 * Returns the exclusive end of the range of keys that start with `prefix`. A range uses the primary key; LIKE would
 * scan the table.
 */
export function endOfPrefix(prefix: string): string | Buffer {
  const points = Array.from(prefix, (char) => char.codePointAt(0)!);
  while (points.at(-1) === LAST_CODE_POINT) points.pop();
  const last = points.pop();
  if (last === undefined) return AFTER_ALL_TEXT;
  // The code points after U+D7FF are surrogates, which well-formed text does not contain.
  return String.fromCodePoint(...points, last === 0xd7ff ? 0xe000 : last + 1);
}
