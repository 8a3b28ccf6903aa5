/** A bounded number of slots that tenants take in turn, so that none waits behind another's thousands. */
export interface FairSlots {
  /** Takes one at once if there is one. */
  tryTake(tenantId: string): boolean;
  /** Calls `granted` when it is this one's turn: the slot is taken then. The returned function takes the request back. */
  ask(tenantId: string, granted: () => void): () => void;
  release(): void;
  readonly taken: number;
}

export function createFairSlots(count: number): FairSlots {
  /** Who waits, by tenant; the order of the map is the order of turns. */
  const waiting = new Map<string, Array<() => void>>();
  let taken = 0;

  function next(): (() => void) | undefined {
    for (const [tenantId, queue] of waiting) {
      const granted = queue.shift();
      // To the end of the round, or out of it.
      waiting.delete(tenantId);
      if (queue.length > 0) waiting.set(tenantId, queue);
      if (granted) return granted;
    }
    return undefined;
  }

  return {
    get taken() {
      return taken;
    },
    tryTake() {
      if (taken >= count) return false;
      taken++;
      return true;
    },
    ask(tenantId, granted) {
      const queue = waiting.get(tenantId) ?? [];
      queue.push(granted);
      waiting.set(tenantId, queue);
      return () => {
        const index = queue.indexOf(granted);
        if (index !== -1) queue.splice(index, 1);
      };
    },
    release() {
      const granted = next();
      if (granted) granted();
      else taken--;
    },
  };
}
