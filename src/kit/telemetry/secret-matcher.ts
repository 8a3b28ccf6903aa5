import { inspect } from 'node:util';

/** Number of characters by which texts are scanned. No registered text is shorter. */
const WINDOW_CHARS = 8;
/** Length of a common start at which a cut value is masked, for example in an error message of limited length. */
const CUT_CHARS = 32;
/** The same at the end of a text or before an ellipsis. */
const CUT_END_CHARS = 12;
/** Lines of multi-line values are masked one by one from this length on. */
const LINE_CHARS = 16;
/** Characters before the end of a match in which overlapping matches are searched. */
const OVERLAP_CHARS = 1024;
/** Values above this length are encoded again for a comparison, because all their encodings would need much memory. */
const MAX_KEPT_CHARS = 1024;

/** Finds values in texts: as they are, and as JSON, base64, hex, or URL encoding. */
export class SecretMatcher {
  readonly #scan: RegExp;
  /** Forms by their first WINDOW_CHARS characters. */
  readonly #forms = new Map<string, Array<() => string>>();
  readonly #mask: string;

  /** Values shorter than WINDOW_CHARS are ignored. */
  constructor(values: Iterable<string>, mask: string) {
    this.#mask = mask;
    for (const value of values) this.#add(value);
    const starts = [...this.#forms.keys()].map((start) => start.replace(/[\\^$.*+?()[\]{}|/-]/g, '\\$&'));
    this.#scan = new RegExp(starts.length === 0 ? '(?!)' : starts.join('|'), 'g');
  }

  mask(text: string): string {
    if (text.length < WINDOW_CHARS) return text;
    this.#scan.lastIndex = 0;
    let masked = '';
    let spanStart = -1;
    let spanEnd = 0;
    for (let hit = this.#scan.exec(text); hit !== null; hit = this.#scan.exec(text)) {
      const start = hit.index;
      const end = this.#endOf(text, start, hit[0]);
      this.#scan.lastIndex = Math.max(start + 1, end - OVERLAP_CHARS);
      if (end <= spanEnd) continue;
      if (spanStart === -1 || start > spanEnd) {
        masked += text.slice(spanStart === -1 ? 0 : spanEnd, start) + this.#mask;
        spanStart = start;
      }
      spanEnd = end;
      if (end === text.length) break;
    }
    return spanStart === -1 ? text : masked + text.slice(spanEnd);
  }

  #add(value: string): void {
    encodingsOf(value).forEach((form, index) => {
      if (form.length < WINDOW_CHARS) return;
      const start = form.slice(0, WINDOW_CHARS);
      const read = value.length <= MAX_KEPT_CHARS ? () => form : () => encodingsOf(value)[index]!;
      const forms = this.#forms.get(start);
      if (forms) forms.push(read);
      else this.#forms.set(start, [read]);
    });
  }

  /** Returns the end of the longest form at this place, or 0. */
  #endOf(text: string, start: number, key: string): number {
    let end = 0;
    for (const read of this.#forms.get(key) ?? []) end = Math.max(end, endOfForm(text, start, read()));
    return end;
  }
}

function endOfForm(text: string, start: number, form: string): number {
  if (text.startsWith(form, start)) return start + form.length;
  let length = WINDOW_CHARS;
  while (length < form.length && text.charCodeAt(start + length) === form.charCodeAt(length)) length++;
  const end = start + length;
  const isAtEnd = end === text.length || text[end] === '…' || text.startsWith('...', end);
  return length >= CUT_CHARS || (isAtEnd && length >= CUT_END_CHARS) ? end : 0;
}

/** Returns a value and its encodings, in a fixed order. */
function encodingsOf(value: string): string[] {
  const json = JSON.stringify(value).slice(1, -1);
  const bytes = Buffer.from(value);
  const hex = bytes.toString('hex');
  return [
    ...new Set([
      value,
      ...linesOf(value),
      json,
      JSON.stringify(json).slice(1, -1),
      json.replace(/[^\x20-\x7e]/g, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`),
      inspect(value).slice(1, -1),
      ...[0, 1, 2].flatMap((offset) => base64Of(bytes, offset)),
      hex,
      hex.toUpperCase(),
      ...urlEncodingsOf(value),
    ]),
  ];
}

function linesOf(value: string): string[] {
  if (!value.includes('\n')) return [];
  // Lines such as "-----BEGIN PRIVATE KEY-----" are the same in all keys.
  return value.split(/\r?\n/).filter((line) => line.length >= LINE_CHARS && !line.startsWith('-----'));
}

/** Returns the characters of the base64 form that depend only on the value, which starts at this byte of a group. */
function base64Of(bytes: Buffer, offset: number): string[] {
  const shifted = Buffer.concat([Buffer.alloc(offset), bytes]);
  const first = Math.ceil((offset * 8) / 6);
  const end = Math.floor((shifted.length * 8) / 6);
  const texts = [shifted.toString('base64'), shifted.toString('base64url')];
  const parts = texts.map((text) => text.slice(first, end));
  // The last characters of a whole value, with and without padding.
  return offset === 0 ? [...texts, texts[0]!.replace(/=+$/, ''), ...parts] : parts;
}

function urlEncodingsOf(value: string): string[] {
  const text = value.toWellFormed();
  const component = encodeURIComponent(text);
  const strict = component.replace(/[!'()*]/g, (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`);
  const form = new URLSearchParams({ '': text }).toString().slice(1);
  const all = [component, strict, form, encodeURI(text)];
  return [...all, ...all.map((each) => each.replace(/%[0-9A-F]{2}/g, (code) => code.toLowerCase()))];
}
