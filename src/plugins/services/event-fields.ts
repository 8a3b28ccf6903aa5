import type { ExecutionRequest } from '../../contracts/index.ts';
import type { TrackedEvent } from '../../kit/telemetry/analytics.ts';

/**
 * Returns the fields of an event besides its payload. `runId` is that of the workflow run, if the execution belongs to
 * one.
 */
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
