const PUNCTUATION: ReadonlySet<string> = new Set('[]{},:');
const QUOTE = 0x22;
const BACKSLASH = 0x5c;

interface Level {
  /** Whether the object is on the path, so that its keys count. */
  isOnPath: boolean;
  isArray: boolean;
  /** Current key, or the index of an array as text. */
  key: string | undefined;
  /** Number of keys of this object that equal the path's next name. */
  found: number;
}

/**
 * Returns whether a JSON text has a key of the path more than once in one object. `JSON.parse` keeps the last value, and
 * another parser the first, so that the sender and the handler could read different values. Bodies of other formats
 * never repeat a key here.
 */
export function repeatsKey(body: Buffer, path: readonly string[]): boolean {
  const text = body.toString('utf8');
  if (!/^\s*[{[]/.test(text)) return false;
  const levels: Level[] = [];
  let pending: string | undefined;
  for (const token of tokens(text)) {
    const level = levels.at(-1);
    if (token === '{' || token === '[') {
      const isOnPath = level ? level.isOnPath && level.key === path[levels.length - 1] : true;
      const isArray = token === '[';
      levels.push({ isOnPath, isArray, key: isArray ? '0' : undefined, found: 0 });
    } else if (token === '}' || token === ']') {
      levels.pop();
    } else if (token === ':' && level && pending !== undefined) {
      level.key = pending;
      if (level.isOnPath && pending === path[levels.length - 1] && ++level.found > 1) return true;
    } else if (token === ',' && level) {
      level.key = level.isArray ? String(Number(level.key) + 1) : undefined;
    }
    pending = token.startsWith('"') ? unquoted(token) : undefined;
  }
  return false;
}

/** Yields strings and punctuation. Scans without a regular expression, whose stack overflows for strings of 16 MB. */
function* tokens(text: string): Generator<string> {
  for (let at = 0; at < text.length; ) {
    const start = at;
    const char = text[at]!;
    at = char === '"' ? endOfString(text, at) : at + 1;
    if (char === '"') yield text.slice(start, at);
    else if (PUNCTUATION.has(char)) yield char;
  }
}

/** Returns the index after the closing quote, or after the text if the string is not closed. */
function endOfString(text: string, start: number): number {
  for (let at = start + 1; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === BACKSLASH) at++;
    else if (code === QUOTE) return at + 1;
  }
  return text.length;
}

/** Returns the text of a JSON string, whose escapes could hide that two keys are equal. */
function unquoted(token: string): string | undefined {
  try {
    return JSON.parse(token) as string;
  } catch {
    return undefined;
  }
}
