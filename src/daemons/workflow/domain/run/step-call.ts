import type { RunRecord } from '../../../../store/ports/index.ts';
import type { StepRun } from '../steps/step-kind.ts';

export function stepRunOf(run: RunRecord, spanId: string): StepRun {
  const { id, tenantId, workflowId, hostId, requestId, traceId, deliveryId, depth } = run;
  return { id, tenantId, workflowId, hostId, requestId, traceId, deliveryId, spanId, depth };
}
