import { wordsOf } from '../../telemetry/log-rows.ts';
import { storable } from '../storable.ts';

/**
 * Maximum length of an indexed text, because an index entry can have at most 2,704 bytes. Plugin ids are never longer
 * than this maximum.
 */
export const MAX_KEY_CHARS = 214;
const MAX_WORD_CHARS = 200;
/** Limit of all words of a message. PostgreSQL allows 1 MiB. */
const MAX_WORDS_CHARS = 250_000;
const DIACRITICS = /[\u0300-\u036f]/g;

/** Returns a text that PostgreSQL reads from JSON: without U+0000 and unpaired surrogates. */
export function jsonText(text: string): string {
  return storable(text.toWellFormed());
}

/** Returns a text for an indexed column, and for comparisons with such a column. */
export function indexedText(text: string): string {
  return jsonText(text.slice(0, MAX_KEY_CHARS));
}

/** Returns the words of a message as `tsvector`: in lower case, without diacritics. */
export function searchVector(message: string): string {
  const all = [...new Set(normalizedWords(message))].join(' ');
  return all.length <= MAX_WORDS_CHARS ? all : all.slice(0, all.lastIndexOf(' ', MAX_WORDS_CHARS));
}

/** Returns a search as `tsquery`, or undefined if the search has no words. */
export function searchQuery(search: string): string | undefined {
  const words = normalizedWords(search);
  return words.length > 0 ? `${words.join(' & ')}:*` : undefined;
}

/** Words contain only letters, digits and marks, so they need no quotes in a `tsvector` or `tsquery`. */
function normalizedWords(text: string): string[] {
  const plain = text.normalize('NFD').replace(DIACRITICS, '').normalize('NFC').toLowerCase();
  return wordsOf(plain).map((word) => word.slice(0, MAX_WORD_CHARS).toWellFormed());
}
