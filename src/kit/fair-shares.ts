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

/** Whether more than one tenant has come. */
export interface Tenancy {
  readonly isShared: boolean;
  note(tenantId: string): void;
}

export function createTenancy(): Tenancy {
  let first: string | undefined;
  let isShared = false;
  return {
    get isShared() {
      return isShared;
    },
    note(tenantId) {
      first ??= tenantId;
      isShared ||= tenantId !== first;
    },
  };
}

/**
 * With `tenancy`, nothing is kept back before a second tenant has come, which then waits once: for places that come free before
 * long by themselves. Most platforms serve one tenant, which is to have all there is.
 */
export function createFairShares(count: number, tenancy?: Tenancy): FairShares {
  const held = new Map<string, number>();
  let free = count;

  function mayTake(tenantId: string, places = 1): boolean {
    const isAlone = tenancy !== undefined && !tenancy.isShared;
    return places <= free && (isAlone || (held.get(tenantId) ?? 0) < FOR_EACH_FREE * free);
  }
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
