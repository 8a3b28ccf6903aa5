// biome-ignore-all lint/suspicious/noControlCharactersInRegex: matches control characters on purpose

import { isRecord } from '../data/is-record.ts';

/** Matches control characters, and characters that change the text direction. */
const CONTROL = /[\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069]/g;
/** Matches the same characters as `CONTROL`, except newlines and tabs. */
const CONTROL_EXCEPT_LINES =
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069]/g;
/**
 * Matches the characters of `CONTROL_EXCEPT_LINES`. Captures the colour sequences of `createStyle`, except black and
 * white, which can hide text.
 */
const CONTROL_OR_COLOUR =
  /(\u001b\[(?:1|2|22|3[1-69]|90)m)|[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069]/g;

/** Escapes all control characters in a line. Otherwise, text from plugins could move the cursor or forge log lines. */
export function escapeAllControls(text: string): string {
  return text.replace(CONTROL, spell);
}

/**
 * Escapes control sequences in terminal output, except colours. The output can contain text from webhook senders,
 * plugins and hosts.
 */
export function escapeControls(text: string): string {
  return text.replace(CONTROL_OR_COLOUR, (character, colour?: string) => colour ?? spell(character));
}

/**
 * Copies data and escapes control characters in all strings and keys. Keeps newlines and tabs. Callers escape before
 * formatting, so that only the command's own colours reach the terminal.
 */
export function escapeControlsIn<Data>(data: Data): Data {
  return mapTexts(data, cleaned) as Data;
}

/**
 * Escapes data like `escapeControlsIn`. Also puts each string on one line, so that strings cannot imitate lines of the
 * platform.
 */
export function escapeToSingleLines<Data>(data: Data): Data {
  return mapTexts(data, (text) => cleaned(oneLine(text))) as Data;
}

const cleaned = (text: string): string => text.replace(CONTROL_EXCEPT_LINES, spell);

function mapTexts(value: unknown, clean: (text: string) => string): unknown {
  if (typeof value === 'string') return clean(value);
  if (Array.isArray(value)) return value.map((item) => mapTexts(item, clean));
  if (!isRecord(value) || Object.getPrototypeOf(value) !== Object.prototype) return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [clean(key), mapTexts(item, clean)]));
}

/**
 * Serializes a value to JSON with control characters escaped, as in `\u009b`. Parsing the JSON returns the same value.
 */
export function jsonText(value: unknown): string {
  return escapeControlsInJson(JSON.stringify(value));
}

/** Escapes control characters in JSON text. JSON.stringify already escapes characters below U+0020. */
export function escapeControlsInJson(json: string): string {
  return json.replace(
    CONTROL_EXCEPT_LINES,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}

export function oneLine(text: string): string {
  return text.replace(/\s*[\r\n]+\s*/g, ' ');
}

function spell(character: string): string {
  const code = character.charCodeAt(0);
  if (character === '\n') return '\\n';
  return code > 0xff ? `\\u${code.toString(16)}` : `\\x${code.toString(16).padStart(2, '0')}`;
}
