import type { JsonValue } from '../data/json-value.ts';
import type { Budget } from './budget.ts';

/** Caches for each large value whether the value contains a map with the key `constructor`. */
const known = new WeakMap<object, boolean>();
/**
 * Maximum number of items in a value whose scan result is not cached. A repeated scan of so few items is cheaper than
 * caching.
 */
const FEW = 64;
/** Cost of scanning one item, in budget units. */
const COST_OF_SCAN = 0.1;
/** Number of items that the current scan has visited. */
let scanned = 0;

/**
 * Converts JSON to CEL. A map with the key `constructor` becomes a `Map`, because the CEL library reads
 * `value.constructor`. The outer `rebuiltLevels` levels are rebuilt for each evaluation and therefore not cached.
 */
export function toCel(value: JsonValue | undefined, rebuiltLevels = 0, budget?: Budget): unknown {
  return isOdd(value, rebuiltLevels, budget) ? asMap(value) : value;
}

function isOdd(value: JsonValue | undefined, rebuiltLevels: number, budget?: Budget): boolean {
  budget?.spend(COST_OF_SCAN);
  if (typeof value !== 'object' || value === null) return false;
  if (rebuiltLevels > 0) return someOf(value, (item) => isOdd(item, rebuiltLevels - 1, budget));
  const before = known.get(value);
  if (before !== undefined) return before;
  scanned = 0;
  const odd = isOddWithin(value);
  if (scanned > FEW) known.set(value, odd);
  else budget?.spend(scanned * COST_OF_SCAN);
  return odd;
}

function isOddWithin(value: JsonValue): boolean {
  scanned++;
  return typeof value === 'object' && value !== null && someOf(value, isOddWithin);
}

function someOf(value: JsonValue & object, isOne: (item: JsonValue) => boolean): boolean {
  if (Array.isArray(value)) return value.some(isOne);
  for (const key in value) if (key === 'constructor' || isOne(value[key]!)) return true;
  return false;
}

function asMap(value: JsonValue | undefined): unknown {
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map(asMap);
  const entries = Object.entries(value).map(([key, item]) => [key, asMap(item)] as const);
  return Object.hasOwn(value, 'constructor') ? new Map(entries) : Object.fromEntries(entries);
}

/**
 * Converts CEL values to JSON. Integers become numbers, or strings if a number cannot represent them exactly.
 * Timestamps become ISO text, and durations become seconds.
 */
export function toJson(value: unknown): JsonValue {
  if (value === null || value === undefined) return null;
  if (typeof value === 'bigint') {
    const number = Number(value);
    return Number.isSafeInteger(number) ? number : String(value);
  }
  if (typeof value === 'number') return Number.isFinite(value) ? value : null;
  if (typeof value !== 'object') return value as string | boolean;
  if (Array.isArray(value)) return isPlain(value) ? (value as JsonValue) : value.map(toJson);
  if (value instanceof Date) return value.toISOString();
  if (value instanceof Uint8Array) return Buffer.from(value).toString('base64');
  if (value instanceof Map)
    return Object.fromEntries([...value].map(([key, item]) => [String(key), toJson(item)]));
  const proto = Object.getPrototypeOf(value);
  if (proto === Object.prototype || proto === null) {
    return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, toJson(item)]));
  }
  if ('hasValue' in value && typeof value.hasValue === 'function')
    return value.hasValue() ? toJson((value as unknown as { value(): unknown }).value()) : null;
  if ('seconds' in value)
    return Number(value.seconds) + Number((value as { nanos?: number }).nanos ?? 0) / 1e9;
  if ('valueOf' in value && typeof value.valueOf() !== 'object') return toJson(value.valueOf());
  return String(value);
}

function isPlain(items: unknown[]): boolean {
  return items.every(
    (item) => typeof item === 'string' || typeof item === 'boolean' || typeof item === 'number',
  );
}
