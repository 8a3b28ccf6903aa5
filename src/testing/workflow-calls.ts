import { setTimeout as pause } from 'node:timers/promises';
import { getJob, getRun, listRunSteps, type RunId, type RunStatus, startRun } from '../contracts/index.ts';
import { createClient, serviceHeaders } from '../http/index.ts';
import type { Clock } from '../kit/clock.ts';
import { PlatformError } from '../kit/errors.ts';
import type { TestServices } from './services.ts';
import type { TestHost } from './test-host.ts';
import type { CallerOptions } from './types.ts';

/** In real time, as the engine works in real time between the waits that the test's clock ends. */
const LOOK_MS = 10;
const PATIENCE_MS = 15_000;

const ENDED = new Set<RunStatus>(['succeeded', 'failed', 'timed_out', 'cancelled']);

/** What a test does with the workflow service. */
export function workflowCalls(
  { urlOf, keys, tick }: TestServices,
  clock: Clock,
): Pick<TestHost, 'workflow' | 'settled'> {
  const client = createClient({ url: () => urlOf('workflow'), peer: 'workflow service' });
  const as = ({ tenantId = 'default', user = 'tester' }: CallerOptions = {}) => ({
    headers: serviceHeaders(keys.internalSecret, {
      namespaceId: tenantId,
      ...(user === null ? {} : { hostId: user }),
    }),
  });

  /** A job is a run too, and tells more of itself as a job. */
  async function look(id: string, caller: CallerOptions | undefined) {
    try {
      return await client.call(getJob, { params: { jobId: id as never } }, as(caller));
    } catch (error) {
      if (!(error instanceof PlatformError) || error.code !== 'JOB_NOT_FOUND') throw error;
      return client.call(getRun, { params: { runId: id as never } }, as(caller));
    }
  }

  /** Whether it waits, and for nothing that the clock has brought already. */
  async function waits(runId: RunId, caller: CallerOptions | undefined): Promise<boolean> {
    const { items } = await client.call(listRunSteps, { params: { runId } }, as(caller));
    return !items.some(({ wakeAt }) => wakeAt !== null && wakeAt <= clock.now());
  }

  return {
    async workflow(workflowId, input = {}, caller) {
      return (await client.call(startRun, { body: { workflowId, input: input as never } }, as(caller))).run;
    },
    async settled(id, caller) {
      const until = performance.now() + PATIENCE_MS;
      for (;;) {
        await tick();
        const found = await look(id, caller);
        if (ENDED.has(found.status)) return found;
        if (found.status === 'waiting' && (await waits(id as RunId, caller))) return found;
        if (performance.now() > until) {
          throw new PlatformError(
            'EXECUTION_TIMEOUT',
            `${id} is still ${found.status} after ${PATIENCE_MS} ms${found.queuedReason ? `: ${found.queuedReason}` : ''}.`,
          );
        }
        await pause(LOOK_MS);
      }
    },
  };
}
