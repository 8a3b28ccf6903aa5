import type { Job, RetryPolicy, RunStatus } from '../../../../contracts/index.ts';
import { PlatformError } from '../../../../kit/errors/errors.ts';
import type { JsonValue, RunRecord, RunStore } from '../../../../store/ports/index.ts';
import type { Definitions } from '../definition/definitions.ts';
import { inBraces } from '../definition/templates.ts';
import type { CancelResult, Engine } from '../engine/engine-ports.ts';
import type { RunStarter, Starter, StartRequest } from '../starts/run-starter.ts';
import { type Handlers, JOB_PREFIX } from '../steps/kinds/handlers.ts';
import { type Page, type PageRequest, seqOf } from './run-desk.ts';
import { viewJob } from './views.ts';

export interface JobRequest {
  /** `<plugin id>/<job id>`. */
  handler: string;
  input: JsonValue;
  runAt?: number | undefined;
  priority: number;
  idempotencyKey?: string | undefined;
  retry?: RetryPolicy | undefined;
  timeoutMs?: number | undefined;
}

/** Background jobs: each is a run of one step. @spec REST API: jobs */
export interface JobDesk {
  /** Throws JOB_NOT_FOUND, CONFLICT, QUOTA_EXCEEDED, CONCURRENT_LIMIT_EXCEEDED. */
  submit(request: JobRequest, starter: Starter): Promise<Job>;
  /** Throws JOB_NOT_FOUND. */
  get(tenantId: string, id: string): Promise<Job>;
  list(
    tenantId: string,
    filter: PageRequest & { status?: RunStatus | undefined; handler?: string | undefined },
  ): Promise<Page<Job>>;
  /** Throws JOB_NOT_FOUND, WORKFLOW_ALREADY_CANCELLED. */
  cancel(tenantId: string, id: string): Promise<CancelResult>;
}

export function createJobDesk(deps: {
  store: RunStore;
  engine: Pick<Engine, 'cancel'>;
  starter: RunStarter;
  definitions: Definitions;
  handlers: Pick<Handlers, 'job'>;
}): JobDesk {
  const { store, engine, starter, definitions, handlers } = deps;

  async function find(tenantId: string, id: string): Promise<RunRecord> {
    const run = await store.find(tenantId, id);
    if (run?.kind === 'job') return run;
    throw new PlatformError('JOB_NOT_FOUND', `There is no job "${id}".`, { details: { jobId: id } });
  }

  async function view(run: RunRecord): Promise<Job> {
    const loaded = await store.load(run.seq);
    return viewJob(loaded?.run ?? run, loaded?.steps[0]);
  }

  return {
    async submit({ handler, retry, timeoutMs, idempotencyKey, ...request }, who) {
      const { input, priority, runAt = null } = request;
      const idempotency = idempotencyKey && {
        key: idempotencyKey,
        asked: { kind: 'job' as const, workflowId: handler, input, runAt, priority },
      };
      const asked = (): StartRequest => {
        const { timeoutMs: declared } = handlers.job(handler);
        const keyed = idempotencyKey !== undefined;
        const workflow = definitions.compile(
          jobDefinition(handler, { retry, timeoutMs: timeoutMs ?? declared, keyed }),
        );
        return { ...request, kind: 'job', workflow, trigger: 'job' };
      };
      return viewJob(await starter.startOnce(idempotency || undefined, asked, who));
    },
    get: async (tenantId, id) => view(await find(tenantId, id)),
    async list(tenantId, { cursor, handler, ...filter }) {
      const { runs, next } = await store.list(tenantId, {
        ...filter,
        kind: 'job',
        before: seqOf(cursor),
        workflowId: handler,
      });
      return { items: await Promise.all(runs.map(view)), nextCursor: next === null ? null : String(next) };
    },
    cancel: async (tenantId, id) => engine.cancel(await find(tenantId, id)),
  };
}

/**
 * Definition of a job as a workflow. With an idempotency key the step uses the run id as its own, so that it may repeat
 * after a crash.
 */
function jobDefinition(
  handler: string,
  {
    retry,
    timeoutMs,
    keyed,
  }: { retry: RetryPolicy | undefined; timeoutMs: number | undefined; keyed: boolean },
): unknown {
  return {
    id: handler,
    outputs: { result: inBraces('jobs.job.outputs.result') },
    jobs: {
      job: {
        outputs: { result: inBraces('steps.run.output') },
        steps: [
          {
            id: 'run',
            uses: JOB_PREFIX + handler,
            with: { input: inBraces('input') },
            ...(keyed ? { idempotencyKey: inBraces('run.id') } : {}),
            ...(retry ? { retry } : {}),
            ...(timeoutMs === undefined ? {} : { timeoutMs }),
          },
        ],
      },
    },
  };
}
