const LAST_CODE_POINT = 0x10ffff;

/**
 * Returns the first text after all texts that start with `prefix`, in code point order. Returns undefined if no such
 * text exists, for example for an empty prefix.
 */
export function prefixEnd(prefix: string): string | undefined {
  const points = Array.from(prefix, (char) => char.codePointAt(0)!);
  while (points.at(-1) === LAST_CODE_POINT) points.pop();
  const last = points.pop();
  if (last === undefined) return undefined;
  // The code points from U+D800 to U+DFFF are surrogates, which well-formed text does not contain.
  return String.fromCodePoint(...points, last === 0xd7ff ? 0xe000 : last + 1);
}
