import { systemClock } from '../../../kit/clock.ts';
import { seconds } from '../../../kit/duration.ts';
import type { PlatformError } from '../../../kit/errors.ts';
import { type Call, cancelled, unavailable } from '../worker/call.ts';

const QUEUE_PER_PLACE = 16;

interface Waiting {
  take(): void;
  giveUp(error: PlatformError): void;
}

/** So many containers at a time; further calls wait their turn, as long as a call may wait for a worker. */
export function createPlaces(count: number) {
  let used = 0;
  let isClosed = false;
  let onIdle = (): void => {};
  const waiting: Waiting[] = [];

  function leave(): void {
    const next = waiting.shift();
    if (next) next.take();
    else if (--used === 0) onIdle();
  }
  return {
    async enter(call: Call): Promise<() => void> {
      if (isClosed) throw stopping();
      if (used < count) {
        used++;
        return leave;
      }
      if (waiting.length >= count * QUEUE_PER_PLACE)
        throw unavailable(`${waiting.length} calls wait for a container already.`, 5);
      await turnIn(waiting, call);
      return leave;
    },
    /** Lets nobody in any more, nor those who wait. */
    close() {
      isClosed = true;
      for (const entry of waiting.splice(0)) entry.giveUp(stopping());
    },
    idle: () =>
      new Promise<void>((resolve) => {
        onIdle = resolve;
        if (used === 0) resolve();
      }),
  };
}

/** Resolves when the call's turn has come. */
function turnIn(waiting: Waiting[], call: Call): Promise<void> {
  return new Promise((resolve, reject) => {
    const leaveQueue = (error: PlatformError): void => {
      const at = waiting.indexOf(entry);
      if (at === -1) return;
      waiting.splice(at, 1);
      entry.giveUp(error);
    };
    const stopTimer = systemClock.after(Math.max(call.timeoutMs, seconds(15)), () =>
      leaveQueue(unavailable('No container became free in time; all are busy.', 5)),
    );
    const entry: Waiting = {
      take() {
        stopTimer();
        resolve();
      },
      giveUp(error) {
        stopTimer();
        reject(error);
      },
    };
    waiting.push(entry);
    call.cancelWith(() => leaveQueue(cancelled(call.request)));
  });
}

function stopping(): PlatformError {
  return unavailable('The platform is stopping.', 5);
}
