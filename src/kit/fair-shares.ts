/** So many places a tenant may hold for each that is free: alone it gets three quarters of them, rounded up. */
const FOR_EACH_FREE = 3;

/**
 * A number of places that tenants share. Whoever holds one keeps it as long as it likes, so room for those who come later has to
 * be there already: the more a tenant holds, the more must be free for it to take another, or several at once (`places`).
 */
export interface FairShares {
  /** Whether `take` would succeed. */
  mayTake(tenantId: string, places?: number): boolean;
  /** Takes a place, or as many as given; false, and none is taken, when the tenant has its share or too few are free. */
  take(tenantId: string, places?: number): boolean;
  /** Gives back of those it took. */
  release(tenantId: string, places?: number): void;
  readonly free: number;
  readonly count: number;
}

/** `forEachFree: Infinity` keeps nothing back: for what one tenant has to itself. */
export function createFairShares(count: number, forEachFree = FOR_EACH_FREE): FairShares {
  const held = new Map<string, number>();
  let free = count;

  const mayTake = (tenantId: string, places = 1): boolean =>
    places <= free && (held.get(tenantId) ?? 0) < forEachFree * free;
  return {
    count,
    mayTake,
    take(tenantId, places = 1) {
      if (!mayTake(tenantId, places)) return false;
      held.set(tenantId, (held.get(tenantId) ?? 0) + places);
      free -= places;
      return true;
    },
    release(tenantId, places = 1) {
      const left = (held.get(tenantId) ?? 0) - places;
      if (left > 0) held.set(tenantId, left);
      else held.delete(tenantId);
      free += places;
    },
    get free() {
      return free;
    },
  };
}
