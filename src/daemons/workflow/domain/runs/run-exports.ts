import type { OtlpTraces, RunExport } from '../../../../contracts/index.ts';
import { otlpRequest, type TimedSpan } from '../../../../kit/telemetry/otlp-request.ts';
import type { EndedSpan } from '../../../../kit/telemetry/tracer.ts';
import type { Clock } from '../../../../kit/time/clock.ts';
import type { RunRecord, RunStore } from '../../../../store/ports/index.ts';
import { attemptSpan, runSpan } from '../run/trace.ts';
import { viewRun } from '../run/views.ts';
import type { Page, PageRequest } from './pages.ts';
import { requireRun } from './require-run.ts';
import type { Runs } from './runs.ts';

const PAGE = 1000;
/** Maximum number of events, and of log lines, in an export. */
const MAX_ITEMS = 10_000;
/** Statuses of steps whose latest attempt has begun and not ended. */
const UNFINISHED = new Set(['running', 'waiting', 'interrupted']);

export interface RunExportsDeps {
  store: Pick<RunStore, 'find'>;
  runs: Pick<Runs, 'get' | 'steps' | 'events' | 'logs'>;
  clock: Clock;
}

type Step = RunExport['steps'][number];

/** Exports single runs. @spec docs/workflows.md "Timeline and export" */
export class RunExports {
  readonly #deps: RunExportsDeps;

  constructor(deps: RunExportsDeps) {
    this.#deps = deps;
  }

  async json(tenantId: string, id: string): Promise<RunExport> {
    const { runs } = this.#deps;
    const run = await runs.get(tenantId, id);
    const steps = await runs.steps(tenantId, id);
    const events = await pagesOf((asked) => runs.events(tenantId, id, asked));
    const logs = await pagesOf((asked) => runs.logs(tenantId, id, { ...asked, order: 'asc' }));
    const truncated = events.hasMore || logs.hasMore;
    return { run, steps, events: events.items, logs: logs.items, truncated };
  }

  /** Span ids are those of live tracing, so that a collector that has both shows each span once. */
  async otlp(tenantId: string, id: string): Promise<OtlpTraces> {
    const { store, runs, clock } = this.#deps;
    const run = await requireRun(store, tenantId, id);
    const steps = await runs.steps(tenantId, id);
    const now = clock.now();
    const spans = [spanOfRun(run, now), ...steps.flatMap((step) => spansOfStep(run, step, now))];
    return otlpRequest(spans, 'workflow');
  }
}

async function pagesOf<Item>(page: (asked: PageRequest) => Promise<Page<Item>>) {
  const items: Item[] = [];
  let cursor: string | undefined;
  do {
    const found = await page({ limit: PAGE, cursor });
    items.push(...found.items);
    cursor = found.nextCursor ?? undefined;
  } while (cursor !== undefined && items.length < MAX_ITEMS);
  return { items, hasMore: cursor !== undefined };
}

function spanOfRun(run: RunRecord, now: number): TimedSpan {
  const { id, workflowId, status, createdAt, finishedAt, error } = viewRun(run);
  return timed(createdAt, finishedAt ?? now, {
    traceId: run.traceId,
    spanId: runSpan(id),
    parentSpanId: run.parentSpanId ?? undefined,
    name: `${run.kind} ${workflowId}`,
    failed: finishedAt !== null && status !== 'succeeded',
    attributes: {
      'svc.run_id': id,
      'svc.workflow_id': workflowId,
      'svc.run_status': status,
      'svc.run_trigger': run.trigger,
      'svc.tenant_id': run.tenantId,
      'svc.request_id': run.requestId,
      ...errorOf(error),
    },
  });
}

/** Returns a span for every attempt. An attempt that has not ended lasts until now. */
function spansOfStep(run: RunRecord, step: Step, now: number): TimedSpan[] {
  const { history, queuedAt, readyAt, startedAt, status, attempts } = step;
  const ended = history.map((attempt) =>
    spanOfAttempt(run, step, {
      ...{ number: attempt.attempt, status: attempt.status, error: attempt.error },
      from: attempt.queuedAt ?? attempt.startedAt ?? attempt.finishedAt,
      to: attempt.finishedAt,
    }),
  );
  const from = queuedAt ?? readyAt ?? startedAt;
  if (from === null || !UNFINISHED.has(status)) return ended;
  const number = Math.max(attempts, history.length + 1);
  return [...ended, spanOfAttempt(run, step, { number, status, error: null, from, to: now })];
}

interface AttemptTimes {
  number: number;
  status: Step['status'];
  error: Step['error'];
  from: number;
  to: number;
}

function spanOfAttempt(run: RunRecord, { id, uses }: Step, attempt: AttemptTimes): TimedSpan {
  const { number, status, error, from, to } = attempt;
  return timed(from, to, {
    traceId: run.traceId,
    spanId: attemptSpan(run.id, id, number),
    parentSpanId: runSpan(run.id),
    name: `step ${id}`,
    failed: error !== null,
    attributes: {
      'svc.run_id': run.id,
      'svc.workflow_id': run.workflowId,
      'svc.step_id': id,
      'svc.step_uses': uses,
      'svc.step_status': status,
      'svc.attempt': number,
      'svc.tenant_id': run.tenantId,
      ...errorOf(error),
    },
  });
}

function timed(from: number, to: number, span: Omit<EndedSpan, 'kind' | 'durationMs'>): TimedSpan {
  return { span: { ...span, kind: 'internal', durationMs: Math.max(0, to - from) }, endedAt: to };
}

function errorOf(error: { code: string; message: string } | null): Record<string, string> {
  return error === null ? {} : { 'svc.error_code': error.code, 'svc.error_message': error.message };
}
