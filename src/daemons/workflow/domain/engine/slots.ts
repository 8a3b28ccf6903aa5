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
  /** Who waits, by tenant; the order of the map is the order of turns. */
  const waiting = new Map<string, Array<() => void>>();

  /** The first in turn whose tenant may have a slot, with the slot taken for it. */
  function next(): (() => void) | undefined {
    for (const [tenantId, queue] of waiting) {
      if (queue.length === 0) waiting.delete(tenantId);
      else if (shares.take(tenantId)) {
        const granted = queue.shift()!;
        // To the end of the round, or out of it.
        waiting.delete(tenantId);
        if (queue.length > 0) waiting.set(tenantId, queue);
        return granted;
      }
    }
    return undefined;
  }

  return {
    tryTake: shares.take,
    ask(tenantId, granted) {
      const queue = waiting.get(tenantId) ?? [];
      queue.push(granted);
      waiting.set(tenantId, queue);
      return () => {
        const index = queue.indexOf(granted);
        if (index !== -1) queue.splice(index, 1);
      };
    },
    release(tenantId) {
      shares.release(tenantId);
      for (let granted = next(); granted; granted = next()) granted();
    },
  };
}
