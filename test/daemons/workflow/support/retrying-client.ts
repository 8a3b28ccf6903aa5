import { setTimeout as pause } from 'node:timers/promises';
import {
  type CallInput,
  type Endpoint,
  listRunSteps,
  listRuns,
  postCancelRun,
  type ReplyOf,
  RunStatus,
  type RunStep,
  sendSignal,
  startRun,
  type WorkflowRun,
} from '../../../../src/contracts/index.ts';
import { PlatformError } from '../../../../src/kit/errors/errors.ts';
import { minutes } from '../../../../src/kit/time/duration.ts';

type Call = <E extends Endpoint>(endpoint: E, input: CallInput<E>) => Promise<ReplyOf<E>>;
type RunsQuery = NonNullable<CallInput<typeof listRuns>['query']>;
type StartOptions = Omit<CallInput<typeof startRun>['body'], 'workflowId' | 'definition'>;
export type Signal = { name: string } & NonNullable<CallInput<typeof sendSignal>['body']>;

/** What a caller gets while the service is away, or on its way out. */
const AWAY: ReadonlySet<string> = new Set([
  'UPSTREAM_UNAVAILABLE',
  'UPSTREAM_TIMEOUT',
  'SERVICE_UNAVAILABLE',
]);
const PAUSE_MS = 20;
const GIVE_UP_MS = minutes(3);
const SETTLE_MS = minutes(3);
const LOOK_MS = 250;
const TOLD = 5;

const FINAL: ReadonlySet<string> = new Set<RunStatus>(['succeeded', 'failed', 'timed_out', 'cancelled']);
const UNFINISHED = RunStatus.options.filter((status) => !FINAL.has(status));

/** A caller of a service that dies and comes back: tries until it is answered. */
export class RetryingClient {
  readonly #call: Call;

  constructor(call: Call) {
    this.#call = call;
  }

  async call<E extends Endpoint>(endpoint: E, input: CallInput<E>): Promise<ReplyOf<E>> {
    const until = performance.now() + GIVE_UP_MS;
    for (;;) {
      try {
        return await this.#call(endpoint, input);
      } catch (error) {
        if (!(error instanceof PlatformError && AWAY.has(error.code))) throw error;
        if (performance.now() > until)
          throw new Error(`${endpoint.method} ${endpoint.path} had no answer: ${error.message}`, {
            cause: error,
          });
        await pause(PAUSE_MS);
      }
    }
  }

  /** The same run for the same key, however often its answer is lost. */
  async start(workflowId: string, options: StartOptions & { idempotencyKey: string }): Promise<string> {
    return (await this.call(startRun, { body: { workflowId, ...options } })).run.id;
  }

  /** A run that has ended takes none. */
  async signal(runId: string, { name, ...body }: Signal): Promise<void> {
    await unless('CONFLICT', this.call(sendSignal, { params: { runId, name }, body }));
  }

  async cancel(runId: string): Promise<void> {
    await unless('WORKFLOW_ALREADY_CANCELLED', this.call(postCancelRun, { params: { runId } }));
  }

  async steps(runId: string): Promise<RunStep[]> {
    return (await this.call(listRunSteps, { params: { runId } })).items;
  }

  /** Newest first. */
  async runs(query: RunsQuery = {}): Promise<WorkflowRun[]> {
    const found: WorkflowRun[] = [];
    for (let cursor: string | null | undefined; cursor !== null; ) {
      const page = await this.call(listRuns, { query: { ...query, limit: 1000, cursor } });
      found.push(...page.items);
      cursor = page.nextCursor;
    }
    return found;
  }

  /** Resolves once every run has ended; throws with what those that have not wait for. `meanwhile` is given them. */
  async allEnded(meanwhile?: (left: WorkflowRun[]) => Promise<void> | undefined): Promise<void> {
    const until = performance.now() + SETTLE_MS;
    for (;;) {
      const left = (await Promise.all(UNFINISHED.map((status) => this.runs({ status })))).flat();
      if (left.length === 0) return;
      if (performance.now() > until) {
        const told = await Promise.all(left.slice(0, TOLD).map((run) => this.#waitsOf(run)));
        throw new Error(`${left.length} runs have not ended:\n${told.join('\n')}`);
      }
      await meanwhile?.(left);
      await pause(LOOK_MS);
    }
  }

  async #waitsOf({ id, workflowId, status, queuedReason, waitingReason }: WorkflowRun): Promise<string> {
    const steps = (await this.steps(id)).filter((step) => !FINAL.has(step.status));
    const waits = steps.map(
      ({ id: step, status: how, waitingFor, wakeAt }) =>
        `${step} ${how} ${JSON.stringify({ waitingFor, wakeAt })}`,
    );
    const why = queuedReason ?? waitingReason ?? 'no reason given';
    return `${workflowId} ${id} is ${status} (${why}): ${waits.join('; ') || 'no open steps'}`;
  }
}

async function unless(code: string, called: Promise<unknown>): Promise<void> {
  try {
    await called;
  } catch (error) {
    if (!(error instanceof PlatformError && error.code === code)) throw error;
  }
}
