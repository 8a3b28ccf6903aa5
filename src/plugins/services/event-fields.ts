import type { ExecutionRequest } from '../../contracts/index.ts';
import type { TrackedEvent } from '../../kit/telemetry/analytics.ts';

/**
 * Returns the fields that all analytics events have in common. `runId` is set if the execution belongs to a workflow
 * run. `parentSpanId` is the span of the execution.
 */
export function eventFields({
  tenantId,
  hostContext,
  executionId,
  host,
  requestId,
  traceId,
  spanId,
}: ExecutionRequest): Pick<TrackedEvent, 'tenantId' | 'runId'> & { ctx: Record<string, string> } {
  return {
    tenantId,
    runId: typeof hostContext.runId === 'string' ? hostContext.runId : executionId,
    ctx: { host, requestId, traceId, ...(spanId === undefined ? {} : { parentSpanId: spanId }) },
  };
}
