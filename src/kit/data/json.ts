/**
 * Returns true if JSON text is nested deeper than `limit`. The text is scanned without parsing, because deep nesting
 * exhausts a parser.
 */
export function nestsDeeperThan(text: string, limit: number): boolean {
  let depth = 0;
  for (let i = 0; i < text.length; i++) {
    const char = text.charCodeAt(i);
    if (char === 0x22) {
      const end = endOfString(text, i);
      if (end === -1) return false;
      i = end;
    } else if (char === 0x7b || char === 0x5b) {
      if (++depth > limit) return true;
    } else if (char === 0x7d || char === 0x5d) depth--;
  }
  return false;
}

/**
 * Returns the index of the closing quote of the string that begins at `start`. Returns -1 if the string is not closed.
 * Ignores escaped quotes.
 */
export function endOfString(text: string, start: number): number {
  for (let end = text.indexOf('"', start + 1); end !== -1; end = text.indexOf('"', end + 1)) {
    let backslashes = 0;
    while (text.charCodeAt(end - 1 - backslashes) === 0x5c) backslashes++;
    if (backslashes % 2 === 0) return end;
  }
  return -1;
}

/**
 * Reads the value at a path such as `a.b.0.c`. Only own properties are read, so that `__proto__` and `constructor` are
 * not found.
 */
export function readDotPath(value: unknown, path: string): unknown {
  let current = value;
  for (const part of path.split('.')) {
    if (typeof current !== 'object' || current === null || !Object.hasOwn(current, part)) return undefined;
    current = (current as Record<string, unknown>)[part];
  }
  return current;
}

/**
 * Returns whether the JSON text of a value would be longer than `chars`. Does not serialize the value. Does not count
 * escape sequences.
 */
export function isLongerThan(value: unknown, chars: number): boolean {
  const open: unknown[] = [value];
  let left = chars;
  while (open.length > 0) {
    const one = open.pop();
    left -= typeof one === 'string' ? one.length + QUOTES : 1;
    // The array length is checked first, because pushing many items onto the stack is expensive.
    if (left < 0 || (Array.isArray(one) && one.length > left)) return true;
    if (typeof one !== 'object' || one === null) continue;
    if (!Array.isArray(one)) for (const key in one) left -= key.length + QUOTES;
    for (const item of Object.values(one)) open.push(item);
  }
  return left < 0;
}

const QUOTES = 2;

/** Serializes JSON with sorted keys, so that equal values have equal text. */
export function canonicalJson(value: unknown): string {
  return JSON.stringify(value, (_key, item) =>
    typeof item === 'object' && item !== null && !Array.isArray(item)
      ? Object.fromEntries(Object.entries(item).sort(([a], [b]) => (a < b ? -1 : 1)))
      : item,
  );
}
