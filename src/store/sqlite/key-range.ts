import { AFTER_ALL_TEXT } from './schema.ts';

/** Where a scan starts: at the prefix, or right behind `after`. Keys hold no NUL, so one appended makes the next possible key. */
export function firstKey(prefix: string, after: string | undefined): string {
  if (after === undefined) return prefix;
  const next = `${after}\0`;
  return Buffer.compare(Buffer.from(next), Buffer.from(prefix)) > 0 ? next : prefix;
}

const LAST_CODE_POINT = 0x10ffff;

/** The first key behind all that start with `prefix`: a range of the primary key, where LIKE would need escapes and a scan. */
export function endOfPrefix(prefix: string): string | Buffer {
  const points = Array.from(prefix, (char) => char.codePointAt(0)!);
  while (points.at(-1) === LAST_CODE_POINT) points.pop();
  const last = points.pop();
  if (last === undefined) return AFTER_ALL_TEXT;
  // The code points after U+D7FF are surrogates, which no text holds.
  return String.fromCodePoint(...points, last === 0xd7ff ? 0xe000 : last + 1);
}
