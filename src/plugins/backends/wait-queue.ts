import { createFairQueue } from '../../kit/limits/fair-queue.ts';
import { createFairShares, type Tenancy } from '../../kit/limits/fair-shares.ts';
import type { Call } from './worker/call.ts';

const MAX_BYTES = 64 * 1024 * 1024;

export interface WaitQueueLimits {
  maxCalls: number;
  /**
   * Maximum total size of the frames of queued calls, in bytes. These frames are kept in memory. The default is 64 MiB.
   */
  maxBytes?: number;
  /** Tenants that share the queue. While only one tenant has waiting calls, it can use the whole queue. */
  tenancy?: Tenancy;
}

/** Queue of calls that wait for a slot, with fair queueing between tenants. */
export interface WaitQueue {
  readonly size: number;
  /** Queues the call and returns undefined. If the queue rejects the call, returns the reason. */
  enter(call: Call): string | undefined;
  /** Removes the call from the queue. Returns false if the queue does not contain the call. */
  leave(call: Call): boolean;
  /**
   * Removes and returns the next call, in round-robin order of tenants. Only the first call of each tenant is
   * considered. Skips calls for which `accepts` returns false.
   */
  next(accepts: (call: Call) => boolean): Call | undefined;
  /** Removes and returns the next call like `next`, but keeps its room in the queue, so that `putBack` cannot fail. */
  lend(accepts: (call: Call) => boolean): Call | undefined;
  /** Puts a lent call back, before the calls that arrived later. */
  putBack(call: Call): void;
  /** Frees the room of a lent call. */
  release(call: Call): void;
  /** Returns the number of queued calls of the tenants for which `counts` returns true. */
  sizeOf(counts: (tenantId: string) => boolean): number;
  /** Removes and returns all calls. */
  clear(): Call[];
}

export function createWaitQueue(limits: WaitQueueLimits): WaitQueue {
  const { maxCalls, maxBytes = MAX_BYTES, tenancy } = limits;
  const turns = createFairQueue<Call>();
  const callShares = createFairShares(maxCalls, tenancy);
  const byteShares = createFairShares(maxBytes, tenancy);
  const entries = new Map<Call, { bytes: number; arrival: number }>();
  let arrivals = 0;

  function release(call: Call): void {
    const { tenantId } = call.request;
    callShares.release(tenantId);
    byteShares.release(tenantId, entries.get(call)?.bytes);
    entries.delete(call);
  }
  return {
    get size() {
      return turns.size;
    },
    enter(call) {
      const { tenantId } = call.request;
      const bytes = Buffer.byteLength(call.frame);
      if (callShares.free === 0 || bytes > byteShares.free)
        return `${entries.size} calls are waiting already`;
      if (!callShares.mayTake(tenantId) || !byteShares.mayTake(tenantId, bytes))
        return `the namespace "${tenantId}" has used its share of the queue; the rest is reserved for other namespaces`;
      callShares.take(tenantId);
      byteShares.take(tenantId, bytes);
      entries.set(call, { bytes, arrival: ++arrivals });
      turns.add(tenantId, call);
      return undefined;
    },
    leave(call) {
      if (!turns.remove(call.request.tenantId, call)) return false;
      release(call);
      return true;
    },
    next(accepts) {
      const call = turns.next((_, first) => accepts(first));
      if (call) release(call);
      return call;
    },
    lend: (accepts) => turns.next((_, first) => accepts(first)),
    putBack(call) {
      const { arrival } = entries.get(call)!;
      turns.putBack(call.request.tenantId, call, (other) => entries.get(other)!.arrival > arrival);
    },
    release,
    sizeOf: turns.sizeOf,
    clear() {
      const all = turns.clear();
      for (const call of all) release(call);
      return all;
    },
  };
}
