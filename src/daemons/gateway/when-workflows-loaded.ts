import { setTimeout as sleep } from 'node:timers/promises';
import { seconds } from '../../kit/time/duration.ts';
import type { PluginLockStore } from '../../store/ports/index.ts';

/** Much longer than a reload, so that only a workflow service that cannot load the plugins exceeds the limit. */
const TIMEOUT_MS = seconds(5);
const RECHECK_MS = 25;

/**
 * Waits until the workflow services have loaded a revision of the plugins, at most 5 s. The gateway then asks them which
 * webhooks start workflows, and an earlier answer would lack those of new plugins.
 */
export async function whenWorkflowsLoaded(
  lock: Pick<PluginLockStore, 'behind'>,
  revision: number,
): Promise<void> {
  const until = performance.now() + TIMEOUT_MS;
  while ((await lock.behind(revision, 'workflow')).length > 0 && performance.now() < until)
    await sleep(RECHECK_MS);
}
