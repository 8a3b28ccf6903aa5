/** A parsed JSON object. Its keys are untrusted and can include `__proto__`. */
export type JsonObject = Record<string, unknown>;

export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/**
 * Merges `over` into `base`. Objects are merged key by key. All other values in `over` replace the values in `base`,
 * including arrays and null.
 */
export function mergeOver(base: unknown, over: unknown): unknown {
  if (!isObject(base) || !isObject(over)) return over;
  // `fromEntries` defines own properties. A `__proto__` key therefore stays an ordinary key and never sets a prototype.
  return Object.fromEntries([
    ...Object.entries(base),
    ...Object.entries(over).map(([key, value]) => [
      key,
      Object.hasOwn(base, key) ? mergeOver(base[key], value) : value,
    ]),
  ]);
}

/** Returns true when `value` has an own property at `path`. */
export function hasPath(value: unknown, path: readonly PropertyKey[]): boolean {
  let current = value;
  for (const key of path) {
    if (typeof current !== 'object' || current === null || !Object.hasOwn(current, key)) return false;
    current = (current as Record<PropertyKey, unknown>)[key];
  }
  return true;
}
