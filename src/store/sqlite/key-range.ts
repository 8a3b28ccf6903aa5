/** Upper bound for text columns. An empty blob suffices, because SQLite sorts blobs after all texts. */
export const AFTER_ALL_TEXT = Buffer.alloc(0);

/**
 * Returns the first key of a scan: the prefix, or the first key after `after`. Keys contain no NUL, so appending one
 * gives the next possible key.
 */
export function firstKey(prefix: string, after: string | undefined): string {
  if (after === undefined) return prefix;
  const next = `${after}\0`;
  return Buffer.compare(Buffer.from(next), Buffer.from(prefix)) > 0 ? next : prefix;
}

const LAST_CODE_POINT = 0x10ffff;

/**
 * Returns the first key after all keys that start with `prefix`. LIKE would need escaping and a full scan instead of
 * a range of the primary key.
 */
export function endOfPrefix(prefix: string): string | Buffer {
  const points = Array.from(prefix, (char) => char.codePointAt(0)!);
  while (points.at(-1) === LAST_CODE_POINT) points.pop();
  const last = points.pop();
  if (last === undefined) return AFTER_ALL_TEXT;
  // Skips the surrogates after U+D7FF, which well-formed text cannot hold.
  return String.fromCodePoint(...points, last === 0xd7ff ? 0xe000 : last + 1);
}
