/** What waits, by tenant: tenants take turns, and what waits for one of them goes in the order it came. */
export interface Turns<Item> {
  readonly size: number;
  add(tenantId: string, item: Item): void;
  /** False when it does not wait (any more). */
  remove(tenantId: string, item: Item): boolean;
  /** Takes out the first in turn that is accepted; of each tenant its first is asked about, and no other. */
  next(accepts: (tenantId: string, item: Item) => boolean): Item | undefined;
  /** How many wait of the tenants that `counts` is true of. */
  sizeOf(counts: (tenantId: string) => boolean): number;
  /** Takes out all. */
  clear(): Item[];
}

export function createTurns<Item>(): Turns<Item> {
  /** The order of the map is the order of turns; no tenant of whom nothing waits is in it. */
  const waiting = new Map<string, Item[]>();
  let size = 0;

  return {
    get size() {
      return size;
    },
    add(tenantId, item) {
      size++;
      const own = waiting.get(tenantId);
      if (own) own.push(item);
      else waiting.set(tenantId, [item]);
    },
    remove(tenantId, item) {
      const own = waiting.get(tenantId) ?? [];
      const at = own.indexOf(item);
      if (at === -1) return false;
      size--;
      own.splice(at, 1);
      if (own.length === 0) waiting.delete(tenantId);
      return true;
    },
    next(accepts) {
      for (const [tenantId, own] of waiting) {
        const first = own[0] as Item;
        if (!accepts(tenantId, first)) continue;
        size--;
        own.shift();
        // To the end of the round, or out of it.
        waiting.delete(tenantId);
        if (own.length > 0) waiting.set(tenantId, own);
        return first;
      }
      return undefined;
    },
    sizeOf(counts) {
      let sum = 0;
      for (const [tenantId, own] of waiting) if (counts(tenantId)) sum += own.length;
      return sum;
    },
    clear() {
      const all = [...waiting.values()].flat();
      waiting.clear();
      size = 0;
      return all;
    },
  };
}
