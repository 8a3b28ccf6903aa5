import { derivedSpanId } from '../../../../kit/telemetry/trace.ts';
import type { Tracer } from '../../../../kit/telemetry/tracer.ts';
import type { RunRecord } from '../../../../store/ports/index.ts';
import type { EndedAttempt } from './effects.ts';

/** Returns the id of a run's span, which is the parent span of the run's steps. */
export const runSpan = (runId: string): string => derivedSpanId(runId);
/** Returns the span id of a step attempt. This span is the parent of the spans of all calls in the attempt. */
export const attemptSpan = (runId: string, stepId: string, attempt: number): string =>
  derivedSpanId(runId, stepId, attempt);

/** Sends the span of an ended attempt to the tracer. */
export function traceAttempt(
  tracer: Tracer | undefined,
  run: RunRecord,
  { stepId, uses, attempt, durationMs, failure }: EndedAttempt,
): void {
  tracer?.ended({
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
      'svc.attempt': attempt,
      'svc.tenant_id': run.tenantId,
      ...(failure ? { 'svc.error_class': failure.errorClass, 'svc.error_code': failure.error.code } : {}),
    },
  });
}

/** Sends the span of an ended run to the tracer. The duration excludes the time in the queue. */
export function traceRun(tracer: Tracer | undefined, run: RunRecord, durationMs: number): void {
  tracer?.ended({
    traceId: run.traceId,
    spanId: runSpan(run.id),
    parentSpanId: run.parentSpanId ?? undefined,
    name: `${run.kind} ${run.workflowId}`,
    kind: 'internal',
    durationMs,
    failed: run.status !== 'succeeded',
    attributes: {
      'svc.run_id': run.id,
      'svc.workflow_id': run.workflowId,
      'svc.run_status': run.status,
      'svc.run_trigger': run.trigger,
      'svc.tenant_id': run.tenantId,
      'svc.request_id': run.requestId,
    },
  });
}
