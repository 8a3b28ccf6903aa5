import { randomBytes } from 'node:crypto';
import { endOfString } from './json.ts';

/**
 * Values that one text may hold. What reading JSON costs goes by values and not by bytes: six megabytes of `[]` hold
 * us for 0.4 s, as many of text for 0.01 s.
 */
const MAX_VALUES = 500_000;
/**
 * New keys that one text may hold: keys that no object had yet after the same keys before them. Each makes a string
 * and a shape for objects, which costs ten times what a value does: half a million hold us for 0.8 s.
 */
const MAX_NEW_KEYS = 50_000;
/** Shorter text cannot hold more values, nor nest deep enough to matter. */
const CHEAP_CHARS = 1024;
/** A key with its value is `"a":0,` at the least. */
const KEY_CHARS = 6;
/**
 * The two sides count a little differently, as each hashes by a seed of its own, and what one counts the other may be sent with
 * more around it: the runner is to be the stricter one.
 */
const SLACK = 1.2;

/** JSON of so many characters holds less than half of MAX_VALUES, and no more than MAX_NEW_KEYS. */
const ORDINARY_CHARS = 300_000;

/**
 * How many times more values and keys are borne in the answer to an input of so many characters: a handler may return all
 * of its input, twice.
 */
export function answerTimes(inputChars: number): number {
  return Math.max(1, Math.ceil((2 * inputChars) / MAX_VALUES), Math.ceil(inputChars / ORDINARY_CHARS));
}

/**
 * What makes the text too costly to read, in words that complete "JSON …"; undefined when nothing does. `times` more values and
 * keys than else are borne.
 */
export function costFault(text: string, maxDepth: number, times = 1): string | undefined {
  return (
    valuesFault(text, maxDepth, MAX_VALUES * times, SLACK) ??
    keysFault(text, maxDepth, MAX_NEW_KEYS * times, SLACK)
  );
}

/** The same for text of the runner's own making, which is looked through only when it could hold too much. */
export function ownCostFault(text: string, maxDepth: number, times = 1): string | undefined {
  const maxValues = MAX_VALUES * times;
  const fault = text.length > maxValues ? valuesFault(text, maxDepth, maxValues) : undefined;
  return fault ?? keysFault(text, maxDepth, MAX_NEW_KEYS * times);
}

function valuesFault(text: string, maxDepth: number, maxValues: number, slack = 1): string | undefined {
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
  return values > maxValues * slack ? `of more than ${maxValues} values` : undefined;
}

const SEED = randomBytes(4).readInt32LE();
/** A bit for each new key: with 60,000 of a million set, few are taken for known ones. */
const SEEN_BITS = 20;

/** Counts by hashes of an object's keys so far. The text nests no deeper than `maxDepth`. */
function keysFault(text: string, maxDepth: number, maxKeys: number, slack = 1): string | undefined {
  if (text.length <= maxKeys * KEY_CHARS) return undefined;
  const seen = new Int32Array(2 ** (SEEN_BITS - 5));
  const shapes = new Int32Array(maxDepth + 2);
  let depth = 0;
  let keys = 0;
  /** Where the latest string begins, until a colon makes it a key: text of colons must not have it hashed for each. */
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
      const slot = spread(shape) >>> (32 - SEEN_BITS);
      const bit = 1 << (slot & 31);
      if ((seen[slot >>> 5]! & bit) !== 0) continue;
      seen[slot >>> 5]! |= bit;
      if (++keys > maxKeys * slack) return `of more than ${maxKeys} different keys`;
    } else if (char === 0x7b || char === 0x5b) shapes[++depth] = SEED;
    else if (char === 0x7d || char === 0x5d) depth = Math.max(0, depth - 1);
  }
  return undefined;
}

/** Of the string that begins there, up to its quote. Escapes are taken as they are written. */
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

function spread(hash: number): number {
  const half = Math.imul(hash ^ (hash >>> 15), 0x2c1b3c6d);
  return half ^ (half >>> 13);
}
