import { hash } from 'node:crypto';
import type { Tracer } from '../../../../kit/telemetry/tracer.ts';
import type { RunRecord } from '../../../../store/ports/index.ts';
import type { EndedAttempt } from './effects.ts';

/** Derives a span id of 16 hex digits. A daemon that resumes the run derives the same ids. */
function spanOf(...parts: Array<string | number>): string {
  return hash('sha256', parts.join('\n')).slice(0, 16);
}

/** Returns the span id of a run, which is the parent of its steps' spans. */
export const runSpan = (runId: string): string => spanOf(runId);
/** Returns the span id of one attempt of a step, which is the parent of the spans of its calls. */
export const attemptSpan = (runId: string, stepId: string, attempt: number): string =>
  spanOf(runId, stepId, attempt);

/** Reports the span of an ended attempt. */
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

/** Reports the span of an ended run. Time in the queue is excluded. */
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
