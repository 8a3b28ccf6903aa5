import { randomBytes } from 'node:crypto';
import { endOfString } from './json.ts';

/**
 * Maximum number of values in one JSON text. Parsing time depends on the number of values rather than bytes. For
 * example, 6 MB of `[]` block the event loop for 0.4 s.
 */
const MAX_VALUES = 500_000;
/**
 * Maximum number of distinct keys in one JSON text. Equal keys in objects of different shapes count separately. A new
 * key costs ten times as much as a value.
 */
const MAX_NEW_KEYS = 50_000;
/**
 * Maximum length of text that is not checked. Such text exceeds no limit, because each of the 512 permitted nesting
 * levels needs two brackets.
 */
const CHEAP_CHARS = 1024;
/** Length of the shortest property, `"a":0,`. */
const KEY_CHARS = 6;
/**
 * Factor by which the platform's limits exceed the runner's limits. The runner must apply the stricter limit, because
 * the two counts differ slightly.
 */
const TOLERANCE = 1.2;

/** JSON of up to this length contains less than half of MAX_VALUES and no more than MAX_NEW_KEYS. */
const ORDINARY_CHARS = 300_000;

/**
 * Returns the factor for the limits of a handler's result. The factor grows with the input, because a handler can
 * return its input twice.
 */
export function resultLimitFactor(inputChars: number): number {
  return Math.max(1, Math.ceil((2 * inputChars) / MAX_VALUES), Math.ceil(inputChars / ORDINARY_CHARS));
}

/**
 * Returns the reason why the text is too expensive to parse, or undefined. The reason completes the sentence "The body
 * is JSON …". `factor` scales the limits.
 */
export function findCostProblem(text: string, maxDepth: number, factor = 1): string | undefined {
  return (
    findExcessValues(text, maxDepth, MAX_VALUES * factor, TOLERANCE) ??
    findExcessKeys(text, maxDepth, MAX_NEW_KEYS * factor, TOLERANCE)
  );
}

/**
 * Checks text that the runner serialized, without the tolerance of `findCostProblem`. Counts values only if the text is
 * long enough to exceed the limit.
 */
export function findOwnCostProblem(text: string, maxDepth: number, factor = 1): string | undefined {
  const maxValues = MAX_VALUES * factor;
  const problem = text.length > maxValues ? findExcessValues(text, maxDepth, maxValues) : undefined;
  return problem ?? findExcessKeys(text, maxDepth, MAX_NEW_KEYS * factor);
}

function findExcessValues(
  text: string,
  maxDepth: number,
  maxValues: number,
  tolerance = 1,
): string | undefined {
  if (text.length <= CHEAP_CHARS) return undefined;
  let depth = 0;
  let values = 1;
  for (let i = 0; i < text.length; i++) {
    const char = text.charCodeAt(i);
    if (char === 0x22) {
      const end = endOfString(text, i);
      if (end === -1) return undefined;
      i = end;
    } else if (char === 0x2c) values++;
    else if (char === 0x7b || char === 0x5b) {
      values++;
      if (++depth > maxDepth) return `nested deeper than ${maxDepth} levels`;
    } else if (char === 0x7d || char === 0x5d) depth--;
  }
  return values > maxValues * tolerance ? `of more than ${maxValues} values` : undefined;
}

const SEED = randomBytes(4).readInt32LE();
/**
 * Base-2 logarithm of the size of the Bloom filter for counted keys. With 2^20 bits, false positives are rare at 60,000
 * keys.
 */
const SEEN_BITS = 20;

/**
 * Returns a reason such as "of more than 50000 different keys", or undefined. The text must not be nested deeper than
 * `maxDepth`.
 */
function findExcessKeys(text: string, maxDepth: number, maxKeys: number, tolerance = 1): string | undefined {
  if (text.length <= maxKeys * KEY_CHARS) return undefined;
  const seen = new Int32Array(2 ** (SEEN_BITS - 5));
  const shapes = new Int32Array(maxDepth + 2);
  let depth = 0;
  let keys = 0;
  /**
   * Start index of the latest string. A string is hashed only if a colon follows, so long string values cost little.
   */
  let string: number | undefined;
  for (let i = 0; i < text.length; i++) {
    const char = text.charCodeAt(i);
    if (char === 0x22) {
      string = i + 1;
      i = endOfString(text, i);
      if (i === -1) return undefined;
    } else if (char === 0x3a && string !== undefined) {
      const shape = mixed(shapes[depth]!, hashOf(text, string));
      string = undefined;
      shapes[depth] = shape;
      const slot = scramble(shape) >>> (32 - SEEN_BITS);
      const bit = 1 << (slot & 31);
      if ((seen[slot >>> 5]! & bit) !== 0) continue;
      seen[slot >>> 5]! |= bit;
      if (++keys > maxKeys * tolerance) return `of more than ${maxKeys} different keys`;
    } else if (char === 0x7b || char === 0x5b) shapes[++depth] = SEED;
    else if (char === 0x7d || char === 0x5d) depth = Math.max(0, depth - 1);
  }
  return undefined;
}

/** Hashes the string that begins at `start`, up to its closing quote. Escape sequences are hashed without decoding. */
function hashOf(text: string, start: number): number {
  let hash = SEED;
  for (let i = start; ; i++) {
    const char = text.charCodeAt(i);
    if (char === 0x22) return hash;
    hash = mixed(hash, char);
    if (char === 0x5c) hash = mixed(hash, text.charCodeAt(++i));
  }
}

function mixed(hash: number, value: number): number {
  return Math.imul(hash ^ value, 0x01000193);
}

function scramble(hash: number): number {
  const half = Math.imul(hash ^ (hash >>> 15), 0x2c1b3c6d);
  return half ^ (half >>> 13);
}
