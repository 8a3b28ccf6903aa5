import { createFairQueue, type FairQueue } from '../../kit/limits/fair-queue.ts';
import {
  createFairShares,
  createTenancy,
  type FairShares,
  type Tenancy,
} from '../../kit/limits/fair-shares.ts';

/**
 * Maximum number of concurrent calls of one plugin. The number is limited because each call buffers a response. With
 * several tenants, one tenant gets at most eight calls.
 */
const MAX_AT_ONCE = 10;

export interface SlotContext {
  request: { plugin: { id: string }; tenantId: string };
  signal: AbortSignal;
}

export interface FetchSlots {
  /**
   * Waits for a free slot and returns a function that releases the slot. Rejects with the signal's reason if the signal
   * aborts.
   */
  enter(context: SlotContext): Promise<() => void>;
}

interface PluginSlots {
  tenancy: Tenancy;
  shares: FairShares;
  waiting: FairQueue<() => void>;
}

/**
 * Limits each plugin to ten concurrent calls, shared fairly between tenants. Each plugin process also limits its calls
 * in flight, so the queue stays short.
 */
export function createFetchSlots(): FetchSlots {
  const busy = new Map<string, PluginSlots>();

  function open(pluginId: string): PluginSlots {
    const tenancy = createTenancy();
    const shares = createFairShares(MAX_AT_ONCE, tenancy);
    const opened = { tenancy, shares, waiting: createFairQueue<() => void>() };
    busy.set(pluginId, opened);
    return opened;
  }
  return {
    async enter({ request: { plugin, tenantId }, signal }) {
      const { tenancy, shares, waiting } = busy.get(plugin.id) ?? open(plugin.id);
      tenancy.note(tenantId);
      if (!shares.take(tenantId)) await turnIn(waiting, tenantId, signal);
      const next = () => waiting.next((other) => shares.take(other));
      return () => {
        shares.release(tenantId);
        for (let take = next(); take; take = next()) take();
        if (shares.free === shares.count) busy.delete(plugin.id);
      };
    },
  };
}

function turnIn(waiting: FairQueue<() => void>, tenantId: string, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const take = (): void => {
      signal.removeEventListener('abort', leave);
      resolve();
    };
    const leave = (): void => {
      waiting.remove(tenantId, take);
      reject(signal.reason);
    };
    signal.addEventListener('abort', leave, { once: true });
    waiting.add(tenantId, take);
  });
}
