import type { OtlpTraces, RunError, RunExport } from '../../../../contracts/index.ts';
import { otlpRequest, type TimedSpan } from '../../../../kit/telemetry/otlp-request.ts';
import type { EndedSpan } from '../../../../kit/telemetry/tracer.ts';
import type { Clock } from '../../../../kit/time/clock.ts';
import type { RunRecord, RunStore } from '../../../../store/ports/index.ts';
import { attemptSpanOf, runSpanOf } from '../run/trace.ts';
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
  const endedAt = run.finishedAt ?? now;
  return {
    span: withMessage(runSpanOf(run, endedAt), run.error === null ? null : JSON.parse(run.error)),
    endedAt,
  };
}

/** Returns a span for every attempt. An attempt that has not ended lasts until now. */
function spansOfStep(run: RunRecord, step: Step, now: number): TimedSpan[] {
  const { id: stepId, uses, history, status, attempts } = step;
  const ended = history.map(({ attempt, status, errorClass, error, startedAt, finishedAt }): TimedSpan => {
    const durationMs = Math.max(0, finishedAt - (startedAt ?? finishedAt));
    const failure = error && { errorClass, error };
    const span = attemptSpanOf(run, { stepId, uses, attempt, status, durationMs, failure });
    return { span: withMessage(span, error), endedAt: finishedAt };
  });
  const startedAt = step.attemptStartedAt ?? step.queuedAt ?? step.readyAt;
  if (startedAt === null || !UNFINISHED.has(status)) return ended;
  const attempt = Math.max(attempts, history.length + 1);
  const durationMs = Math.max(0, now - startedAt);
  const open = attemptSpanOf(run, { stepId, uses, attempt, status, durationMs, failure: null });
  return [...ended, { span: open, endedAt: now }];
}

/** Live tracing sends no messages, which can contain data of tenants. */
function withMessage(span: EndedSpan, error: RunError | null): EndedSpan {
  if (error === null) return span;
  return { ...span, attributes: { ...span.attributes, 'svc.error_message': error.message } };
}
