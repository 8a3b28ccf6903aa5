import { performance } from 'node:perf_hooks';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { seconds } from '../time/duration.ts';

const MAX_TRIES = 10;
const RETRY_MS = seconds(2);
/** Max event loop utilization for a collection to run. */
const MAX_UTILIZATION = 0.1;

type Collect = (options: { type: 'major'; execution: 'sync'; flavor: 'last-resort' }) => void;

/**
 * Runs one full garbage collection when the process is idle after startup: module loading leaves 10 MB of garbage and a
 * grown nursery. Skipped if the process stays busy. Uses real time, because it depends on CPU load.
 */
export function settleMemory(afterMs: number, triesLeft = MAX_TRIES): void {
  const before = performance.eventLoopUtilization();
  setTimeout(() => {
    const { utilization } = performance.eventLoopUtilization(before);
    if (utilization <= MAX_UTILIZATION) collect();
    else if (triesLeft > 1) settleMemory(RETRY_MS, triesLeft - 1);
  }, afterMs).unref();
}

/** V8 exposes `gc` behind a flag, and to contexts created after the flag is set. */
function collect(): void {
  setFlagsFromString('--expose-gc');
  const gc = runInNewContext('gc') as Collect;
  setFlagsFromString('--no-expose-gc');
  gc({ type: 'major', execution: 'sync', flavor: 'last-resort' });
}
