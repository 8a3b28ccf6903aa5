import { performance } from 'node:perf_hooks';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { seconds } from './duration.ts';

const TRIES = 10;
const LOOK_AGAIN_MS = seconds(2);
/** Share of time that the event loop may have been busy in the moment before. */
const QUIET = 0.1;

type Collect = (options: { type: 'major'; execution: 'sync'; flavor: 'last-resort' }) => void;

/**
 * Gives back what starting took and needs no more: modules leave 10 MB of dead objects and a grown nursery, which V8 keeps
 * until memory runs short. One thorough collection, in the first quiet moment after `afterMs`; a process that is busy from
 * the start is left alone. Real time, as it waits for the processor.
 */
export function settleMemory(afterMs: number, triesLeft = TRIES): void {
  const before = performance.eventLoopUtilization();
  setTimeout(() => {
    const { utilization } = performance.eventLoopUtilization(before);
    if (utilization <= QUIET) collect();
    else if (triesLeft > 1) settleMemory(LOOK_AGAIN_MS, triesLeft - 1);
  }, afterMs).unref();
}

/** V8 offers it to whoever starts Node with a flag; a context made after setting the flag has it as well. */
function collect(): void {
  setFlagsFromString('--expose-gc');
  const gc = runInNewContext('gc') as Collect;
  setFlagsFromString('--no-expose-gc');
  gc({ type: 'major', execution: 'sync', flavor: 'last-resort' });
}
