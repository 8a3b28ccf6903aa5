// biome-ignore-all lint/suspicious/noControlCharactersInRegex: these are what it is about.

import { isRecord } from '../kit/is-record.ts';

/** Control characters, and those that turn round the direction in which a terminal shows what follows. */
const CONTROL = /[\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069]/g;
/** The same but for line ends and tabs. */
const UNASKED =
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069]/g;
/** The same but for the colours of `createStyle`; black and white are not among them, as they can hide text. */
const UNASKED_OR_COLOUR =
  /(\u001b\[(?:1|2|22|3[1-69]|90)m)|[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069]/g;

/** One line with every control character spelt out: plugins write into logs, and must not move the cursor or forge a line. */
export function spelledOut(text: string): string {
  return text.replace(CONTROL, spell);
}

/**
 * What goes to a terminal: senders of webhooks, plugins and hosts have a say in it, and must not clear the screen, set the
 * title, hide what follows or answer in our place.
 */
export function harmless(text: string): string {
  return text.replace(UNASKED_OR_COLOUR, (character, colour?: string) => colour ?? spell(character));
}

/**
 * A copy of data whose texts, keys included, hold no control characters but line ends and tabs. Applied before a command
 * formats the data, so that only the command's own colours reach the terminal.
 */
export function harmlessData<Data>(data: Data): Data {
  return mapTexts(data, cleaned) as Data;
}

/** As `harmlessData`, and each text on one line: within a remark, a line end would let it pass for a line of ours. */
export function harmlessLines<Data>(data: Data): Data {
  return mapTexts(data, (text) => cleaned(oneLine(text))) as Data;
}

const cleaned = (text: string): string => text.replace(UNASKED, spell);

function mapTexts(value: unknown, clean: (text: string) => string): unknown {
  if (typeof value === 'string') return clean(value);
  if (Array.isArray(value)) return value.map((item) => mapTexts(item, clean));
  if (!isRecord(value) || Object.getPrototypeOf(value) !== Object.prototype) return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [clean(key), mapTexts(item, clean)]));
}

/** JSON whose texts hold none of these characters as they are: `\u009b` has the same value, and no terminal obeys it. */
export function jsonText(value: unknown): string {
  return harmlessJson(JSON.stringify(value));
}

/** The same for JSON text. JSON.stringify escapes the characters below U+0020 itself. */
export function harmlessJson(json: string): string {
  return json.replace(UNASKED, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

/** A text of elsewhere within a line of ours. */
export function oneLine(text: string): string {
  return text.replace(/\s*[\r\n]+\s*/g, ' ');
}

function spell(character: string): string {
  const code = character.charCodeAt(0);
  if (character === '\n') return '\\n';
  return code > 0xff ? `\\u${code.toString(16)}` : `\\x${code.toString(16).padStart(2, '0')}`;
}
