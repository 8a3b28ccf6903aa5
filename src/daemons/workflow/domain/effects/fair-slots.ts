import { createFairQueue } from '../../../../kit/limits/fair-queue.ts';
import { createFairShares } from '../../../../kit/limits/fair-shares.ts';

/**
 * Concurrency limit with fair shares and round robin by tenant. No tenant waits behind thousands of requests of another
 * tenant.
 */
export interface FairSlots {
  available(tenantId: string): number;
  /** Takes a slot. Returns false if no slot is available to the tenant. */
  tryTake(tenantId: string): boolean;
  /**
   * Queues a request for a slot. Calls `granted` after the slot was taken. The returned function withdraws the request.
   */
  ask(tenantId: string, granted: () => void): () => void;
  grant(): void;
  release(tenantId: string): void;
}

export function createFairSlots(count: number): FairSlots {
  const shares = createFairShares(count);
  const waiting = createFairQueue<() => void>();

  /** Takes a slot for the next queued request. Skips tenants that have reached their fair share. */
  const next = () => waiting.next((tenantId) => shares.take(tenantId));

  function grant(): void {
    for (let granted = next(); granted; granted = next()) granted();
  }

  return {
    available: (tenantId) => shares.available(tenantId),
    tryTake: (tenantId) => shares.take(tenantId),
    ask(tenantId, granted) {
      waiting.add(tenantId, granted);
      return () => void waiting.remove(tenantId, granted);
    },
    grant,
    release(tenantId) {
      shares.release(tenantId);
      grant();
    },
  };
}
