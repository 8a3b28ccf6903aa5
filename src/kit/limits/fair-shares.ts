/**
 * A tenant gets another slot only if the tenant holds fewer slots than the free slots times this factor. One tenant can
 * therefore hold about three quarters of all slots.
 */
const MAX_HELD_PER_FREE = 3;

/**
 * Slots shared by tenants. Some slots stay free for new tenants, because tenants can hold slots for any length of time.
 * A tenant with many slots gets another slot only if many slots are free.
 */
export interface FairShares {
  /** Returns true if `take` would succeed. */
  mayTake(tenantId: string, slots?: number): boolean;
  /** Returns true if the tenant could take a slot again directly after it has released one. */
  mayKeep(tenantId: string): boolean;
  /** Returns the number of additional slots that the tenant could take, one slot at a time. */
  available(tenantId: string): number;
  /**
   * Takes the slots and returns true. Takes no slots and returns false if the tenant already holds its share. Also
   * returns false if too few slots are free.
   */
  take(tenantId: string, slots?: number): boolean;
  release(tenantId: string, slots?: number): void;
  readonly free: number;
  readonly count: number;
}

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
 * Creates slots shared by tenants. With `tenancy`, a single tenant can use all slots. A second tenant must then wait
 * until slots are released.
 */
export function createFairShares(count: number, tenancy?: Tenancy): FairShares {
  const held = new Map<string, number>();
  let free = count;

  const isAlone = (): boolean => tenancy !== undefined && !tenancy.isShared;
  const heldBy = (tenantId: string): number => held.get(tenantId) ?? 0;

  function mayTake(tenantId: string, slots = 1): boolean {
    return slots <= free && (isAlone() || heldBy(tenantId) < MAX_HELD_PER_FREE * free);
  }
  return {
    count,
    mayTake,
    mayKeep: (tenantId) => isAlone() || heldBy(tenantId) - 1 < MAX_HELD_PER_FREE * (free + 1),
    available(tenantId) {
      if (isAlone()) return free;
      // The tenant can take its nth additional slot if `held + n - 1 < MAX_HELD_PER_FREE * (free - n + 1)`.
      const room = MAX_HELD_PER_FREE * free - heldBy(tenantId);
      return Math.max(0, Math.ceil(room / (MAX_HELD_PER_FREE + 1)));
    },
    take(tenantId, slots = 1) {
      if (!mayTake(tenantId, slots)) return false;
      held.set(tenantId, heldBy(tenantId) + slots);
      free -= slots;
      return true;
    },
    release(tenantId, slots = 1) {
      const left = heldBy(tenantId) - slots;
      if (left > 0) held.set(tenantId, left);
      else held.delete(tenantId);
      free += slots;
    },
    get free() {
      return free;
    },
  };
}
