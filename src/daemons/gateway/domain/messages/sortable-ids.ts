import type { Random } from '../../../../kit/security/random.ts';
import type { Clock } from '../../../../kit/time/clock.ts';

/** Crockford's base 32, whose characters sort by their values. */
const DIGITS = '0123456789abcdefghjkmnpqrstvwxyz';
const PAIR_VALUES = 32 ** 2;
const PAIRS = Array.from({ length: PAIR_VALUES }, (_, value) => DIGITS[value >> 5]! + DIGITS[value & 31]!);
const TIME_CHARS = 10;
const COUNT_CHARS = 4;
const RANDOM_CHARS = 12;
const REST_CHARS = COUNT_CHARS + RANDOM_CHARS;
const MAX_COUNT = 32 ** COUNT_CHARS - 1;
const HALF_VALUES = 32 ** (RANDOM_CHARS / 2);

/**
 * Makes ids that sort by the time of their creation: 10 characters of epoch ms, 4 of a counter within the millisecond,
 * and 12 random ones. Ids of one process never repeat or go backwards.
 */
export class SortableIds {
  readonly #clock: Clock;
  readonly #random: Random;
  #last = 0;
  #count = 0;

  constructor(clock: Clock, random: Random) {
    this.#clock = clock;
    this.#random = random;
  }

  next(prefix: 'ep' | 'msg'): string {
    const now = Math.max(this.#clock.now(), this.#last);
    this.#count = now > this.#last ? 0 : this.#count + 1;
    this.#last = now;
    if (this.#count > MAX_COUNT) {
      this.#last++;
      this.#count = 0;
    }
    return `${prefix}_${encode(this.#last, TIME_CHARS)}${encode(this.#count, COUNT_CHARS)}${this.#tail()}`;
  }

  /** UUIDs come from a pool of random bytes. Twice 30 of the last random bits are taken. */
  #tail(): string {
    const uuid = this.#random.uuid();
    const half = (hex: string): string => encode(Number.parseInt(hex, 16) % HALF_VALUES, RANDOM_CHARS / 2);
    return half(uuid.slice(19, 23) + uuid.slice(24, 28)) + half(uuid.slice(28));
  }
}

/** `chars` must be even. */
function encode(value: number, chars: number): string {
  let text = '';
  for (let left = value, index = 0; index < chars; index += 2) {
    text = PAIRS[left % PAIR_VALUES]! + text;
    left = Math.floor(left / PAIR_VALUES);
  }
  return text;
}

/** Returns the smallest id of a time, in epoch ms. */
export function firstIdAt(prefix: 'ep' | 'msg', at: number): string {
  return `${prefix}_${encode(Math.max(0, at), TIME_CHARS)}${'0'.repeat(REST_CHARS)}`;
}

/** Returns the time of an id, in epoch ms. */
export function timeOfId(id: string): number {
  return decode(id.slice(id.indexOf('_') + 1, id.indexOf('_') + 1 + TIME_CHARS));
}

/** Returns an id as three integers, for cursors that contain only numbers. */
export function numbersOfId(id: string): [number, number, number] {
  const text = id.slice(id.indexOf('_') + 1);
  return [decode(text.slice(0, 10)), decode(text.slice(10, 18)), decode(text.slice(18))];
}

export function idOfNumbers(prefix: 'ep' | 'msg', [time, middle, end]: readonly number[]): string {
  return `${prefix}_${encode(time!, 10)}${encode(middle!, 8)}${encode(end!, 8)}`;
}

function decode(text: string): number {
  let value = 0;
  for (const char of text) value = value * 32 + DIGITS.indexOf(char);
  return value;
}
