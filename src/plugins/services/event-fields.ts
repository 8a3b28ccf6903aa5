import type { ExecutionRequest } from '../../contracts/index.ts';
import type { TrackedEvent } from '../../kit/telemetry/analytics.ts';

/** Event fields of an execution, besides the payload; `runId` is the workflow run's, if there is one. */
export function eventFields({
  tenantId,
  hostContext,
  executionId,
  host,
  requestId,
  traceId,
}: ExecutionRequest): Pick<TrackedEvent, 'tenantId' | 'runId'> & { ctx: Record<string, string> } {
  return {
    tenantId,
    runId: typeof hostContext.runId === 'string' ? hostContext.runId : executionId,
    ctx: { host, requestId, traceId },
  };
}
