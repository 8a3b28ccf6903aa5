import { UNSUCCESSFUL_STATUSES } from '../../../../contracts/index.ts';
import { derivedSpanId } from '../../../../kit/telemetry/trace.ts';
import type { EndedSpan, Tracer } from '../../../../kit/telemetry/tracer.ts';
import type { RunRecord } from '../../../../store/ports/index.ts';
import type { EndedAttempt } from './effects.ts';

/** Returns the id of a run's span, which is the parent span of the run's steps. */
export const runSpan = (runId: string): string => derivedSpanId(runId);
/** Returns the span id of a step attempt. This span is the parent of the spans of all calls in the attempt. */
export const attemptSpan = (runId: string, stepId: string, attempt: number): string =>
  derivedSpanId(runId, stepId, attempt);

/** Returns the time from the start of a run, without its time in the queue, to `endedAt`. */
export function runDurationMs({ startedAt, createdAt }: RunRecord, endedAt: number): number {
  // The end can precede the start if the clock was set back.
  return Math.max(0, endedAt - (startedAt ?? createdAt));
}

/** Returns the span of a run until `endedAt`. */
export function runSpanOf(run: RunRecord, endedAt: number): EndedSpan {
  const error = run.error === null ? null : (JSON.parse(run.error) as { code: string });
  return {
    traceId: run.traceId,
    spanId: runSpan(run.id),
    parentSpanId: run.parentSpanId ?? undefined,
    name: `${run.kind} ${run.workflowId}`,
    kind: 'internal',
    durationMs: runDurationMs(run, endedAt),
    failed: UNSUCCESSFUL_STATUSES.includes(run.status),
    attributes: {
      'svc.run_id': run.id,
      'svc.workflow_id': run.workflowId,
      'svc.run_status': run.status,
      'svc.run_trigger': run.trigger,
      'svc.tenant_id': run.tenantId,
      'svc.request_id': run.requestId,
      ...(error ? { 'svc.error_code': error.code } : {}),
    },
  };
}

/** Returns the span of an attempt, from the start of its work. */
export function attemptSpanOf(
  run: RunRecord,
  { stepId, uses, attempt, status, durationMs, failure }: EndedAttempt,
): EndedSpan {
  return {
    traceId: run.traceId,
    spanId: attemptSpan(run.id, stepId, attempt),
    parentSpanId: runSpan(run.id),
    name: `step ${stepId}`,
    kind: 'internal',
    durationMs,
    failed: failure !== null,
    attributes: {
      'svc.run_id': run.id,
      'svc.workflow_id': run.workflowId,
      'svc.step_id': stepId,
      'svc.step_uses': uses,
      'svc.step_status': status,
      'svc.attempt': attempt,
      'svc.tenant_id': run.tenantId,
      ...(failure?.errorClass ? { 'svc.error_class': failure.errorClass } : {}),
      ...(failure ? { 'svc.error_code': failure.error.code } : {}),
    },
  };
}

/** Sends the span of an ended attempt to the tracer. */
export function traceAttempt(tracer: Tracer | undefined, run: RunRecord, ended: EndedAttempt): void {
  tracer?.ended(attemptSpanOf(run, ended));
}

/** Sends the span of an ended run to the tracer. */
export function traceRun(tracer: Tracer | undefined, run: RunRecord, endedAt: number): void {
  tracer?.ended(runSpanOf(run, endedAt));
}
