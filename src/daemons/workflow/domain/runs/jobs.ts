import type { Job, RetryPolicy, RunStatus } from '../../../../contracts/index.ts';
import { PlatformError } from '../../../../kit/errors/errors.ts';
import type { JsonValue, RunRecord, RunStore } from '../../../../store/ports/index.ts';
import type { Definitions } from '../definition/definitions.ts';
import { inBraces } from '../definition/templates.ts';
import type { CancelResult, Engine } from '../engine/ports.ts';
import { viewJob } from '../run/views.ts';
import type { Starter, StartRequest } from '../starts/run-admission.ts';
import type { RunStarter } from '../starts/run-starter.ts';
import { type Handlers, JOB_PREFIX } from '../steps/kinds/handlers.ts';
import { type Page, type PageRequest, seqOf } from './pages.ts';

export interface JobRequest {
  /** Handler name in the form `<plugin id>/<job id>`. */
  handler: string;
  input: JsonValue;
  runAt?: number | undefined;
  priority: number;
  idempotencyKey?: string | undefined;
  retry?: RetryPolicy | undefined;
  timeoutMs?: number | undefined;
}

export interface JobsDeps {
  store: RunStore;
  engine: Pick<Engine, 'cancel'>;
  starter: RunStarter;
  definitions: Definitions;
  handlers: Pick<Handlers, 'job'>;
}

type JobFilter = PageRequest & { status?: readonly RunStatus[] | undefined; handler?: string | undefined };

/** Operations on background jobs. Each job is a run with a single step. @spec REST API: jobs */
export class Jobs {
  readonly #deps: JobsDeps;

  constructor(deps: JobsDeps) {
    this.#deps = deps;
  }

  /**
   * Starts a job. Throws JOB_NOT_FOUND, QUOTA_EXCEEDED or CONCURRENT_LIMIT_EXCEEDED. Throws CONFLICT if the idempotency
   * key belongs to another request.
   */
  async submit(
    { handler, retry, timeoutMs, idempotencyKey, ...request }: JobRequest,
    who: Starter,
  ): Promise<Job> {
    const { starter, definitions, handlers } = this.#deps;
    const { input, priority, runAt = null } = request;
    const idempotency = idempotencyKey && {
      key: idempotencyKey,
      request: { kind: 'job' as const, workflowId: handler, input, runAt, priority },
    };
    const build = (): StartRequest => {
      const { timeoutMs: declared } = handlers.job(handler);
      const keyed = idempotencyKey !== undefined;
      const options = { retry, timeoutMs: timeoutMs ?? declared, keyed };
      const workflow = definitions.compile(jobDefinition(handler, options));
      return { ...request, kind: 'job', workflow, trigger: 'job' };
    };
    return viewJob(await starter.startOnce(idempotency || undefined, build, who));
  }

  /** Returns a job. Throws JOB_NOT_FOUND if the tenant has no job with this id. */
  async get(tenantId: string, id: string): Promise<Job> {
    return this.#view(await this.#find(tenantId, id));
  }

  async list(tenantId: string, { cursor, handler, ...filter }: JobFilter): Promise<Page<Job>> {
    const { runs, next } = await this.#deps.store.list(tenantId, {
      ...filter,
      kind: 'job',
      before: seqOf(cursor),
      workflowId: handler,
    });
    const items = await Promise.all(runs.map((run) => this.#view(run)));
    return { items, nextCursor: next === null ? null : String(next) };
  }

  /**
   * Cancels a job. Throws JOB_NOT_FOUND for an unknown job, and WORKFLOW_ALREADY_CANCELLED if the job is already
   * cancelled or being cancelled.
   */
  async cancel(tenantId: string, id: string): Promise<CancelResult> {
    return this.#deps.engine.cancel(await this.#find(tenantId, id));
  }

  async #find(tenantId: string, id: string): Promise<RunRecord> {
    const run = await this.#deps.store.find(tenantId, id);
    if (run?.kind === 'job') return run;
    throw new PlatformError('JOB_NOT_FOUND', `There is no job "${id}".`, { details: { jobId: id } });
  }

  async #view(run: RunRecord): Promise<Job> {
    const loaded = await this.#deps.store.load(run.seq);
    return viewJob(loaded?.run ?? run, loaded?.steps[0]);
  }
}

/**
 * Returns the workflow definition of a job. With `keyed`, the run id is the idempotency key of the step. The step can
 * then be repeated after a crash.
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
