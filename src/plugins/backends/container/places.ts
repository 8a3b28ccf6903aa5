import { systemClock } from '../../../kit/clock.ts';
import { seconds } from '../../../kit/duration.ts';
import type { PlatformError } from '../../../kit/errors.ts';
import { type Call, cancelled, unavailable } from '../worker/call.ts';

const QUEUE_PER_PLACE = 16;

/** So many containers at a time; further calls wait their turn, as long as a call may wait for a worker. */
export function createPlaces(count: number) {
  let used = 0;
  let isClosed = false;
  let onIdle = (): void => {};
  const waiting: Array<{ call: Call; take: () => void }> = [];

  function leave(): void {
    const next = waiting.shift();
    if (next) next.take();
    else if (--used === 0) onIdle();
  }
  return {
    async enter(call: Call): Promise<() => void> {
      if (used < count) {
        used++;
        return leave;
      }
      if (waiting.length >= count * QUEUE_PER_PLACE || isClosed)
        throw unavailable(`${waiting.length} calls wait for a container already.`, 5);
      return new Promise((resolve, reject) => {
        const entry = { call, take: () => resolve(leave) };
        const giveUp = (error: PlatformError): void => {
          const at = waiting.indexOf(entry);
          if (at === -1) return;
          waiting.splice(at, 1);
          reject(error);
        };
        waiting.push(entry);
        systemClock.after(Math.max(call.timeoutMs, seconds(15)), () =>
          giveUp(unavailable('No container became free in time; all are busy.', 5)),
        );
        call.cancelWith(() => giveUp(cancelled(call.request)));
      });
    },
    close() {
      isClosed = true;
    },
    idle: () =>
      new Promise<void>((resolve) => {
        onIdle = resolve;
        if (used === 0) resolve();
      }),
  };
}
