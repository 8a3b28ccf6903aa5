import { createFairQueue } from '../../../../kit/fair-queue.ts';
import { createFairShares } from '../../../../kit/fair-shares.ts';

/** A bounded number of slots that tenants share and take in turn, so that none waits behind another's thousands. */
export interface FairSlots {
  /** Takes one at once if the tenant may have one. */
  tryTake(tenantId: string): boolean;
  /** Calls `granted` when it is this one's turn: the slot is taken then. The returned function takes the request back. */
  ask(tenantId: string, granted: () => void): () => void;
  /** Gives back one that the tenant took. */
  release(tenantId: string): void;
}

export function createFairSlots(count: number): FairSlots {
  const shares = createFairShares(count);
  const waiting = createFairQueue<() => void>();

  /** The first in turn whose tenant may have a slot, with the slot taken for it. */
  const next = () => waiting.next((tenantId) => shares.take(tenantId));

  return {
    tryTake: (tenantId) => shares.take(tenantId),
    ask(tenantId, granted) {
      waiting.add(tenantId, granted);
      return () => void waiting.remove(tenantId, granted);
    },
    release(tenantId) {
      shares.release(tenantId);
      for (let granted = next(); granted; granted = next()) granted();
    },
  };
}
