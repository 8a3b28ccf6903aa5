import type { PlatformError } from '../../../kit/errors/errors.ts';
import { createFairShares, createTenancy } from '../../../kit/limits/fair-shares.ts';
import { systemClock } from '../../../kit/time/clock.ts';
import { seconds } from '../../../kit/time/duration.ts';
import { createWaitQueue } from '../wait-queue.ts';
import { type Call, cancelled, unavailable } from '../worker/call.ts';

const QUEUE_PER_PLACE = 16;
const RETRY_AFTER_S = 5;

interface Waiting {
  take(): void;
  giveUp(error: PlatformError): void;
}

/**
 * Limits concurrent containers, shared fairly between tenants. Further calls are queued for as long as a call may
 * wait for a worker. @spec docs/decisions/0074
 */
export function createSlots(count: number) {
  const tenancy = createTenancy();
  const shares = createFairShares(count, tenancy);
  const queue = createWaitQueue({ maxCalls: count * QUEUE_PER_PLACE, tenancy });
  const waiting = new Map<Call, Waiting>();
  let isClosed = false;
  let onIdle = (): void => {};

  /** Takes a slot for the next call in fair order whose tenant has a share left. */
  const next = () => queue.next((call) => shares.take(call.request.tenantId));

  const leave = (tenantId: string) => (): void => {
    shares.release(tenantId);
    for (let call = next(); call; call = next()) waiting.get(call)!.take();
    if (shares.free === count) onIdle();
  };

  /** Resolves when the call gets a slot. */
  function turn(call: Call): Promise<void> {
    return new Promise((resolve, reject) => {
      const leaveQueue = (error: PlatformError): void => {
        if (queue.leave(call)) waiting.get(call)!.giveUp(error);
      };
      // A caller that waits for the start of the handler sets no time limit.
      const stopTimer = call.onBegun
        ? () => {}
        : systemClock.after(Math.max(call.timeoutMs, seconds(15)), () =>
            leaveQueue(unavailable('No container became free in time; all are busy.', RETRY_AFTER_S)),
          );
      const end = (settle: () => void): void => {
        stopTimer();
        waiting.delete(call);
        settle();
      };
      waiting.set(call, { take: () => end(resolve), giveUp: (error) => end(() => reject(error)) });
      call.cancelWith(() => leaveQueue(cancelled(call.request)));
    });
  }

  return {
    /**
     * Resolves with a function that releases the slot. Throws SERVICE_UNAVAILABLE when none becomes free in
     * time.
     */
    async enter(call: Call): Promise<() => void> {
      if (isClosed) throw stopping();
      const { tenantId } = call.request;
      tenancy.note(tenantId);
      if (!shares.take(tenantId)) {
        const refused = queue.enter(call);
        if (refused) throw unavailable(`No container is free: ${refused}.`, RETRY_AFTER_S, 'queue_full');
        await turn(call);
      }
      return leave(tenantId);
    },
    /** Rejects new and waiting calls. */
    close() {
      isClosed = true;
      for (const call of queue.clear()) waiting.get(call)!.giveUp(stopping());
    },
    idle: () =>
      new Promise<void>((resolve) => {
        onIdle = resolve;
        if (shares.free === count) resolve();
      }),
  };
}

function stopping(): PlatformError {
  return unavailable('The platform is stopping.', RETRY_AFTER_S);
}
