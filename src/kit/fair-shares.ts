/** So many places a tenant may hold for each that is free: alone it gets three quarters of them, rounded up. */
const FOR_EACH_FREE = 3;

/**
 * A number of places that tenants share. Whoever holds one keeps it as long as it likes, so room for those who come later has to
 * be there already: the more a tenant holds, the more must be free for it to take another.
 */
export interface FairShares {
  /** Whether `take` would succeed. */
  mayTake(tenantId: string): boolean;
  /** Takes a place; false when the tenant has its share, or none is free. */
  take(tenantId: string): boolean;
  /** Gives back one of those it took. */
  release(tenantId: string): void;
  readonly free: number;
  readonly count: number;
}

export function createFairShares(count: number): FairShares {
  const held = new Map<string, number>();
  let free = count;

  // With none free nobody may take: nobody holds less than none.
  const mayTake = (tenantId: string): boolean => (held.get(tenantId) ?? 0) < FOR_EACH_FREE * free;
  return {
    count,
    mayTake,
    take(tenantId) {
      if (!mayTake(tenantId)) return false;
      held.set(tenantId, (held.get(tenantId) ?? 0) + 1);
      free--;
      return true;
    },
    release(tenantId) {
      const left = (held.get(tenantId) ?? 0) - 1;
      if (left > 0) held.set(tenantId, left);
      else held.delete(tenantId);
      free++;
    },
    get free() {
      return free;
    },
  };
}
