import { type TracedRun, type TraceSpan, UNSUCCESSFUL_STATUSES } from '../../../../contracts/index.ts';
import { derivedSpanId } from '../../../../kit/telemetry/trace.ts';

type Step = TracedRun['steps'][number];

const FAILED: ReadonlySet<string> = new Set(UNSUCCESSFUL_STATUSES);
/** Statuses of steps whose latest attempt has begun and not ended. */
const UNFINISHED = new Set(['running', 'waiting', 'interrupted']);
const JOB_PREFIX = 'job:';

/** Returns the spans of a run or job: the run itself and the attempts of its steps. */
export function runSpans({ kind, run, requestId, parentSpanId, steps, error }: TracedRun): TraceSpan[] {
  const isJob = kind === 'job';
  const ids = isJob ? { jobId: run.id } : { runId: run.id };
  const span: TraceSpan = {
    ...ids,
    ...(run.deliveryId === null ? {} : { deliveryId: run.deliveryId }),
    id: derivedSpanId(run.id),
    parentId: parentSpanId,
    kind: isJob ? 'job' : 'run',
    name:
      isJob && run.workflowId.startsWith(JOB_PREFIX)
        ? run.workflowId.slice(JOB_PREFIX.length)
        : run.workflowId,
    service: 'workflow',
    requestId,
    ...timeOf(run.createdAt, run.finishedAt),
    ...outcomeOf(run.status, run.finishedAt),
    error: error && { code: error.code, message: error.message },
    attributes: {
      trigger: run.trigger,
      ...(run.startedAt === null ? {} : { queuedMs: run.startedAt - run.createdAt }),
      ...(run.queuedReason === null ? {} : { queuedReason: run.queuedReason }),
      ...(run.waitingReason === null ? {} : { waitingReason: run.waitingReason }),
    },
  };
  return [span, ...steps.flatMap((step) => attemptsOf(step, { ...ids, requestId }, span))];
}

function attemptsOf(step: Step, ids: Partial<TraceSpan>, run: TraceSpan): TraceSpan[] {
  const ended = step.history.map((attempt): TraceSpan => {
    const startedAt = attempt.queuedAt ?? attempt.startedAt ?? attempt.finishedAt;
    return {
      ...partOf(step, ids, run, attempt.attempt),
      ...timeOf(startedAt, attempt.finishedAt),
      ...outcomeOf(attempt.status, attempt.finishedAt),
      error: attempt.error && { code: attempt.error.code, message: attempt.error.message },
    };
  });
  const startedAt = step.queuedAt ?? step.readyAt ?? step.startedAt;
  if (startedAt === null || !UNFINISHED.has(step.status)) return ended;
  const open: TraceSpan = {
    ...partOf(step, ids, run, Math.max(step.attempts, ended.length + 1)),
    ...timeOf(startedAt, null),
    ...outcomeOf(step.status, null),
    error: null,
  };
  return [...ended, open];
}

function partOf({ id, uses, name }: Step, ids: Partial<TraceSpan>, run: TraceSpan, attempt: number) {
  const runId = (run.runId ?? run.jobId)!;
  const isJob = run.kind === 'job';
  return {
    ...ids,
    stepId: id,
    id: derivedSpanId(runId, id, attempt),
    parentId: run.id,
    kind: isJob ? ('attempt' as const) : ('step' as const),
    name: isJob ? String(attempt) : attempt === 1 ? id : `${id} attempt ${attempt}`,
    service: 'workflow',
    attributes: { uses, attempt, ...(name === id ? {} : { name }) },
  };
}

function timeOf(startedAt: number, finishedAt: number | null) {
  return { startedAt, durationMs: finishedAt === null ? null : Math.max(0, finishedAt - startedAt) };
}

function outcomeOf(result: string, finishedAt: number | null): Pick<TraceSpan, 'status' | 'result'> {
  return { result, status: finishedAt === null ? 'open' : FAILED.has(result) ? 'failed' : 'ok' };
}
