import { setTimeout as pause } from 'node:timers/promises';
import {
  type CallInput,
  decideApproval,
  getJob,
  getRun,
  type JobId,
  listRunEvents,
  listRunSteps,
  type RunId,
  type RunStatus,
  sendSignal,
  startRun,
} from '../contracts/index.ts';
import { createClient, serviceHeaders } from '../http/index.ts';
import { PlatformError } from '../kit/errors/errors.ts';
import type { Clock } from '../kit/time/clock.ts';
import type { CallerOptions } from './call-types.ts';
import type { TestHost } from './host-types.ts';
import type { TestServices } from './services.ts';

/**
 * Poll interval for the status of a run, in wall-clock time. The clock of the test controls only the waits of the
 * engine.
 */
const POLL_MS = 10;
const TIMEOUT_MS = 15_000;

/** Statuses in which a run can wait. A `cancelling` run can wait during its clean-up. */
const WAITING = new Set<RunStatus>(['waiting', 'cancelling']);
const ENDED = new Set<RunStatus>(['succeeded', 'failed', 'timed_out', 'cancelled']);

type Client = ReturnType<typeof createClient>;

export function workflowCalls(
  services: TestServices,
  clock: Clock,
): Pick<TestHost, 'workflow' | 'signal' | 'approve' | 'settled'> {
  const client = createClient({ url: () => services.urlOf('workflow'), peer: 'workflow service' });
  const reader = new RunReader(client, services, clock);
  return {
    async workflow(workflowId, input = {}, caller) {
      return (
        await client.call(
          startRun,
          { body: { workflowId, input: input as CallInput<typeof startRun>['body']['input'] } },
          reader.as(caller),
        )
      ).run;
    },
    async signal(id, name, payload = null, caller) {
      const params = { runId: id as RunId, name };
      await client.call(sendSignal, { params, body: { payload } }, reader.as(caller));
    },
    async approve(id, stepId, { approved = true, comment, data, ...caller } = {}) {
      const params = { runId: id as RunId, stepId };
      const body = {
        approved,
        ...(comment === undefined ? {} : { comment }),
        ...(data === undefined
          ? {}
          : { data: data as CallInput<typeof decideApproval>['body']['data'] & {} }),
      };
      await client.call(decideApproval, { params, body }, reader.as(caller));
    },
    async settled(id, caller) {
      const until = performance.now() + TIMEOUT_MS;
      for (;;) {
        await services.tick();
        const found = await reader.find(id, caller);
        if (ENDED.has(found.status)) return found;
        if (WAITING.has(found.status) && (await reader.isSettled(id as RunId, caller))) return found;
        if (performance.now() > until) {
          throw new PlatformError(
            'EXECUTION_TIMEOUT',
            `${id} is still ${found.status} after ${TIMEOUT_MS} ms${found.queuedReason ? `: ${found.queuedReason}` : ''}.`,
          );
        }
        await pause(POLL_MS);
      }
    },
  };
}

class RunReader {
  readonly #client: Client;
  readonly #services: TestServices;
  readonly #clock: Clock;

  constructor(client: Client, services: TestServices, clock: Clock) {
    this.#client = client;
    this.#services = services;
    this.#clock = clock;
  }

  /** Returns call options that authenticate as the caller. */
  as({ tenantId = 'default', user = 'tester' }: CallerOptions = {}) {
    return {
      headers: serviceHeaders(this.#services.keys.internalSecret, {
        namespaceId: tenantId,
        role: 'admin',
        ...(user === null ? {} : { hostId: user }),
      }),
    };
  }

  /** Reads a job or a run. The job endpoint is tried first, because the job endpoint returns more fields. */
  async find(id: string, caller: CallerOptions | undefined) {
    try {
      return await this.#client.call(getJob, { params: { jobId: id as JobId } }, this.as(caller));
    } catch (error) {
      if (!(error instanceof PlatformError) || error.code !== 'JOB_NOT_FOUND') throw error;
      return this.#client.call(getRun, { params: { runId: id as RunId } }, this.as(caller));
    }
  }

  /** Returns true when a waiting run and its children have processed all events and due timers. */
  async isSettled(runId: RunId, caller: CallerOptions | undefined): Promise<boolean> {
    if ((await this.#lastEvent(runId, caller)) !== 'run.waiting') return false;
    const { items } = await this.#client.call(listRunSteps, { params: { runId } }, this.as(caller));
    if (items.some(({ wakeAt }) => wakeAt !== null && wakeAt <= this.#clock.now())) return false;
    const children = items.flatMap(({ waitingFor }) => waitingFor?.runId ?? []);
    const settledChildren = await Promise.all(
      children.map(async (child) => {
        const { status } = await this.find(child, caller);
        return WAITING.has(status) && this.isSettled(child as RunId, caller);
      }),
    );
    return settledChildren.every(Boolean);
  }

  async #lastEvent(runId: RunId, caller: CallerOptions | undefined): Promise<string | undefined> {
    let last: string | undefined;
    for (let cursor: string | null | undefined; cursor !== null; ) {
      const page = await this.#client.call(
        listRunEvents,
        { params: { runId }, query: { limit: 1000, ...(cursor === undefined ? {} : { cursor }) } },
        this.as(caller),
      );
      last = page.items.at(-1)?.type ?? last;
      cursor = page.nextCursor;
    }
    return last;
  }
}
