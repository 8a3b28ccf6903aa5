import type { ExecutionRequest } from '../../contracts/index.ts';
import type { TrackedEvent } from '../../kit/analytics.ts';

/** What an event of an execution carries beside its payload; its run is the workflow's where there is one. */
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
