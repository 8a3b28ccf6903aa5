/** Maximum number of constants that a path may lead through. */
const MAX_CONSTANTS = 20;
const SPACE = /(?:\s|\/\/[^\n]*|\/\*[\s\S]*?\*\/)*/y;
const NAME = /[A-Za-z_$][\w$]*/y;
const CALL = /[A-Za-z_$][\w$.]*\s*(?:<[\w\s,.'"|]*>)?\(/y;
const CLOSING: Readonly<Record<string, string>> = { '{': '}', '[': ']', '(': ')' };

interface Entry {
  /** Absent for an item of a list. */
  key?: string;
  /** Offset of the key, or of the item. */
  start: number;
  /** Offset of the value. */
  value: number;
}

/**
 * Finds values in object and list literals of JSON, JavaScript or TypeScript. The text is scanned, not parsed, so the
 * result for unusual code is the position of the nearest enclosing value that was found.
 */
export class LiteralPositions {
  readonly #text: string;

  constructor(text: string) {
    this.#text = text;
  }

  /** Returns the offset of the literal that a module exports by default, or undefined if the scan does not find one. */
  defaultExport(): number | undefined {
    const found = /^[ \t]*export\s+default\s+/m.exec(this.#text);
    return found ? found.index + found[0].length : undefined;
  }

  /**
   * Returns the offset of the key or item at `path`, such as `webhooks[0].auth.type`, below the value at `start`. For a
   * missing key, returns the offset of the nearest existing ancestor.
   */
  find(path: string, start: number): number {
    let [found, at, rest] = [start, start, path];
    for (let constants = 0; rest !== '' && constants < MAX_CONSTANTS; ) {
      at = this.#skipSpace(at);
      const entry = this.#entryAt(at, rest);
      if (entry) {
        [found, at] = [entry.start, entry.value];
        rest = restOf(rest, entry.key);
        continue;
      }
      const inside = this.#inside(at);
      if (inside === undefined) break;
      at = inside;
      constants++;
    }
    return this.#skipSpace(found);
  }

  #entryAt(at: number, path: string): Entry | undefined {
    if (this.#text[at] === '[') {
      const index = /^\[(\d+)\]/.exec(path)?.[1];
      return index === undefined ? undefined : this.#entries(at)[Number(index)];
    }
    if (this.#text[at] !== '{') return undefined;
    // Keys can contain dots, so the longest matching key is used. A repeated key has the value of its last entry.
    return this.#entries(at)
      .filter(({ key }) => key !== undefined && startsWithKey(path, key))
      .toReversed()
      .toSorted((a, b) => b.key!.length - a.key!.length)[0];
  }

  /** Returns the offset of the argument of a call such as `defineManifest({…})`, or of the value of a constant. */
  #inside(at: number): number | undefined {
    CALL.lastIndex = at;
    if (CALL.test(this.#text)) return CALL.lastIndex;
    NAME.lastIndex = at;
    const name = NAME.exec(this.#text)?.[0];
    if (!name) return undefined;
    const declared = new RegExp(`\\b(?:const|let|var)\\s+${name.replaceAll('$', '\\$')}\\b[^=\\n]*=\\s*`);
    const found = declared.exec(this.#text);
    return found ? found.index + found[0].length : undefined;
  }

  #entries(at: number): Entry[] {
    const isObject = this.#text[at] === '{';
    const closing = isObject ? '}' : ']';
    const entries: Entry[] = [];
    for (let next = this.#skipSpace(at + 1); next < this.#text.length; ) {
      if (this.#text[next] === closing) break;
      const { key, value } = isObject ? this.#property(next) : { key: undefined, value: next };
      entries.push({ ...(key === undefined ? {} : { key }), start: next, value });
      const end = this.#skipValue(value);
      next = this.#skipSpace(this.#text[end] === ',' ? end + 1 : end);
      // Unbalanced text ends the scan.
      if (this.#text[end] !== ',' && this.#text[next] !== closing) break;
    }
    return entries;
  }

  #property(at: number): { key: string | undefined; value: number } {
    const quote = this.#text[at];
    const isQuoted = quote === '"' || quote === "'";
    NAME.lastIndex = at;
    const end = isQuoted ? this.#skipText(at) : NAME.test(this.#text) ? NAME.lastIndex : at;
    const written = this.#text.slice(at, end);
    const key = isQuoted ? unquoted(written) : written || undefined;
    const colon = this.#skipSpace(end);
    // A shorthand property is its own value.
    return { key, value: this.#text[colon] === ':' ? this.#skipSpace(colon + 1) : at };
  }

  /** Returns the offset of the comma or bracket after a value. */
  #skipValue(at: number): number {
    const open: string[] = [];
    for (let next = this.#skipSpace(at); next < this.#text.length; next = this.#skipSpace(next)) {
      const char = this.#text[next]!;
      if (open.length === 0 && /[,}\])]/.test(char)) return next;
      const closing = CLOSING[char];
      if (closing) open.push(closing);
      else if (char === open.at(-1)) open.pop();
      next = /["'`]/.test(char) ? this.#skipText(next) : next + 1;
    }
    return this.#text.length;
  }

  #skipText(at: number): number {
    const quote = this.#text[at];
    let next = at + 1;
    while (next < this.#text.length && this.#text[next] !== quote) next += this.#text[next] === '\\' ? 2 : 1;
    return next + 1;
  }

  #skipSpace(at: number): number {
    SPACE.lastIndex = at;
    SPACE.test(this.#text);
    return Math.max(SPACE.lastIndex, at);
  }
}

function startsWithKey(path: string, key: string): boolean {
  return path.startsWith(key) && /^(?:$|[.[])/.test(path.slice(key.length));
}

/** Removes an entry's key, or its index if the entry has no key, from the start of a path. */
function restOf(path: string, key: string | undefined): string {
  const rest = key === undefined ? path.replace(/^\[\d+\]/, '') : path.slice(key.length);
  return rest.replace(/^\./, '');
}

function unquoted(written: string): string {
  try {
    return JSON.parse(written.startsWith('"') ? written : `"${written.slice(1, -1)}"`);
  } catch {
    return written.slice(1, -1);
  }
}

/** Returns the line and column of an offset. Both start at 1. */
export function positionAt(text: string, offset: number): { line: number; column: number } {
  const before = text.slice(0, offset).split('\n');
  return { line: before.length, column: before.at(-1)!.length + 1 };
}
