import { setTimeout as sleep } from 'node:timers/promises';
import { median } from '../result.ts';

export interface WindowOptions {
  warmUpMs: number;
  windows: number;
  windowMs: number;
}

/**
 * Median of the completed items per second in consecutive windows. `read` returns the number of completed items so far,
 * and whether the backlog lasts.
 */
export async function medianRate(
  read: () => Promise<{ count: number; hasBacklog: boolean }>,
  { warmUpMs, windows, windowMs }: WindowOptions,
): Promise<number> {
  const completed = async (): Promise<{ at: number; count: number }> => {
    const { count, hasBacklog } = await read();
    if (!hasBacklog) throw new Error('The backlog ended before the measurement.');
    return { at: performance.now(), count };
  };
  await sleep(warmUpMs);
  const rates: number[] = [];
  let before = await completed();
  for (let window = 0; window < windows; window++) {
    await sleep(windowMs);
    const after = await completed();
    rates.push((after.count - before.count) / ((after.at - before.at) / 1000));
    before = after;
  }
  return median(rates);
}
