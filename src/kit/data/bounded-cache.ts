/** Cache with string keys and a bounded size. */
export interface BoundedCache<Value> {
  get(key: string): Value | undefined;
  set(key: string, value: Value): void;
  delete(key: string): void;
  clear(): void;
}

/**
 * Creates a cache of two maps. A read moves an entry to the young map. A full young map replaces the old map, because
 * evicting single keys would be slower.
 */
export function createBoundedCache<Value>(
  capacity: number,
  weigh?: (key: string, value: Value) => number,
): BoundedCache<Value> {
  let young = new Map<string, Value>();
  let old = new Map<string, Value>();
  let weight = 0;

  function set(key: string, value: Value): void {
    if ((weigh ? weight : young.size) >= capacity) {
      old = young;
      young = new Map();
      weight = 0;
    }
    if (weigh) weight += weigh(key, value);
    young.set(key, value);
  }
  return {
    get(key) {
      const fresh = young.get(key);
      if (fresh !== undefined) return fresh;
      const aged = old.get(key);
      if (aged !== undefined) set(key, aged);
      return aged;
    },
    set,
    delete(key) {
      young.delete(key);
      old.delete(key);
    },
    clear() {
      young = new Map();
      old = new Map();
      weight = 0;
    },
  };
}
