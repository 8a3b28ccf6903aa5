import { setTimeout as sleep } from 'node:timers/promises';
import { PlatformError } from '../../kit/errors/errors.ts';

const FIRST_PAUSE_MS = 50;
const MAX_PAUSE_MS = 1000;

/**
 * Retries a call while the queue of its plugin's processes is full. Waits in wall-clock time even with a test clock,
 * because plugin processes ignore the test clock.
 */
export async function retryWhileQueueFull<T>(
  signal: AbortSignal | undefined,
  run: () => Promise<T>,
): Promise<T> {
  for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(MAX_PAUSE_MS, pauseMs * 2)) {
    try {
      return await run();
    } catch (error) {
      if (!(error instanceof PlatformError) || error.details.reason !== 'queue_full') throw error;
      await sleep(pauseMs, undefined, { signal });
    }
  }
}
