import { createFairShares, type Tenancy } from '../../kit/fair-shares.ts';
import { createTurns } from '../../kit/turns.ts';
import type { Call } from './worker/call.ts';

const MAX_BYTES = 64 * 1024 * 1024;

export interface WaitingLineLimits {
  maxCalls: number;
  /** Of the calls' frames, which are held in memory until their turn; default 64 MiB. */
  maxBytes?: number;
  /** Of whom it serves; see `createFairShares`. */
  tenancy?: Tenancy;
}

/** Calls that wait for a place to run: tenants share the line and take turns, so that none keeps others out or behind it. */
export interface WaitingLine {
  readonly size: number;
  /** Why there is no room for the call, to complete "… takes no more calls: …"; undefined once it waits. */
  enter(call: Call): string | undefined;
  /** False when it does not wait (any more). */
  leave(call: Call): boolean;
  /** Takes out the first in turn that is accepted; of each tenant its first is asked about, and no other. */
  next(accepts: (call: Call) => boolean): Call | undefined;
  /** How many wait of the tenants that `counts` is true of. */
  sizeOf(counts: (tenantId: string) => boolean): number;
  /** Takes out all. */
  clear(): Call[];
}

export function createWaitingLine(limits: WaitingLineLimits): WaitingLine {
  const { maxCalls, maxBytes = MAX_BYTES, tenancy } = limits;
  const turns = createTurns<Call>();
  const places = createFairShares(maxCalls, tenancy);
  const room = createFairShares(maxBytes, tenancy);
  const bytesOf = new Map<Call, number>();

  function giveBack(call: Call): void {
    const { tenantId } = call.request;
    places.release(tenantId);
    room.release(tenantId, bytesOf.get(call));
    bytesOf.delete(call);
  }
  return {
    get size() {
      return turns.size;
    },
    enter(call) {
      const { tenantId } = call.request;
      const bytes = Buffer.byteLength(call.frame);
      if (places.free === 0 || bytes > room.free) return `${turns.size} calls are waiting already`;
      if (!places.mayTake(tenantId) || !room.mayTake(tenantId, bytes))
        return `the namespace "${tenantId}" has its share of the calls that may wait, and the rest is kept for others`;
      places.take(tenantId);
      room.take(tenantId, bytes);
      bytesOf.set(call, bytes);
      turns.add(tenantId, call);
      return undefined;
    },
    leave(call) {
      if (!turns.remove(call.request.tenantId, call)) return false;
      giveBack(call);
      return true;
    },
    next(accepts) {
      const call = turns.next((_, first) => accepts(first));
      if (call) giveBack(call);
      return call;
    },
    sizeOf: turns.sizeOf,
    clear() {
      const all = turns.clear();
      for (const call of all) giveBack(call);
      return all;
    },
  };
}
