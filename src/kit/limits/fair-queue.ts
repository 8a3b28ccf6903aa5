/** A queue with round robin between tenants. The order within a tenant is first in, first out. */
export interface FairQueue<Item> {
  readonly size: number;
  add(tenantId: string, item: Item): void;
  /**
   * Puts back an item that `next` has removed. The tenant has the next turn, and the item is placed before the first of
   * the tenant's items for which `isLater` returns true.
   */
  putBack(tenantId: string, item: Item, isLater: (other: Item) => boolean): void;
  remove(tenantId: string, item: Item): boolean;
  /**
   * Removes and returns the next item, in round-robin order of tenants. Only the oldest item of each tenant is
   * considered. Skips tenants for which `accepts` returns false.
   */
  next(accepts: (tenantId: string, item: Item) => boolean): Item | undefined;
  /** Returns the number of queued items of the tenants for which `counts` returns true. */
  sizeOf(counts: (tenantId: string) => boolean): number;
  clear(): Item[];
}

export function createFairQueue<Item>(): FairQueue<Item> {
  /** Queued items by tenant, in round-robin order. Tenants without queued items are removed. */
  const queues = new Map<string, Item[]>();
  let size = 0;

  return {
    get size() {
      return size;
    },
    add(tenantId, item) {
      size++;
      const own = queues.get(tenantId);
      if (own) own.push(item);
      else queues.set(tenantId, [item]);
    },
    putBack(tenantId, item, isLater) {
      size++;
      const own = queues.get(tenantId) ?? [];
      const at = own.findIndex(isLater);
      own.splice(at === -1 ? own.length : at, 0, item);
      const others = [...queues].filter(([other]) => other !== tenantId);
      queues.clear();
      for (const [other, items] of [[tenantId, own] as const, ...others]) queues.set(other, items);
    },
    remove(tenantId, item) {
      const own = queues.get(tenantId) ?? [];
      const at = own.indexOf(item);
      if (at === -1) return false;
      size--;
      own.splice(at, 1);
      if (own.length === 0) queues.delete(tenantId);
      return true;
    },
    next(accepts) {
      for (const [tenantId, own] of queues) {
        const first = own[0] as Item;
        if (!accepts(tenantId, first)) continue;
        size--;
        own.shift();
        // Moves the tenant to the end of the round-robin order, or removes a tenant without further items.
        queues.delete(tenantId);
        if (own.length > 0) queues.set(tenantId, own);
        return first;
      }
      return undefined;
    },
    sizeOf(counts) {
      let sum = 0;
      for (const [tenantId, own] of queues) if (counts(tenantId)) sum += own.length;
      return sum;
    },
    clear() {
      const all = [...queues.values()].flat();
      queues.clear();
      size = 0;
      return all;
    },
  };
}
