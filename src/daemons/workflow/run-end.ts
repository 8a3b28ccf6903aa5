import type { Analytics } from '../../kit/telemetry/analytics.ts';
import type { Logger } from '../../kit/telemetry/logger.ts';
import type { Tracer } from '../../kit/telemetry/tracer.ts';
import type { Clock } from '../../kit/time/clock.ts';
import type { JobRecord, RunRecord, WorkflowStore } from '../../store/ports/index.ts';
import type { JobCounts } from './domain/engine/ports.ts';
import { runDurationMs, traceRun } from './domain/run/trace.ts';
import type { WorkflowMetrics } from './metrics.ts';

/**
 * Counts, traces and logs the end of a run or job. Emits the analytics event of a run. @spec Metrics; Analytics events:
 * workflow.run.completed, workflow.run.failed
 */
export async function reportRunEnd(
  run: RunRecord,
  jobs: JobCounts | undefined,
  {
    store,
    metrics,
    analytics,
    logger,
    clock,
    tracer,
  }: {
    store: WorkflowStore;
    metrics: WorkflowMetrics;
    analytics: Analytics;
    logger: Logger;
    clock: Clock;
    tracer: Tracer | undefined;
  },
): Promise<void> {
  const endedAt = run.finishedAt ?? clock.now();
  const durationMs = runDurationMs(run, endedAt);
  traceRun(tracer, run, endedAt);
  metrics.runEnded(run.workflowId, run.status, durationMs / 1000);
  try {
    const { total, failed } = jobs ?? countsOf((await store.runs.load(run.seq))?.jobs ?? []);
    const payload = {
      workflowId: run.workflowId,
      runId: run.id,
      durationMs,
      jobsTotal: total,
      jobsFailed: failed,
    };
    const { tenantId, requestId, traceId, status } = run;
    const event = eventOf(run);
    if (event)
      analytics.track(event, { tenantId, runId: run.id, payload, ctx: { status, requestId, traceId } });
    logger.info(`Run ${run.id} of ${run.workflowId} ${status}`, {
      tenantId,
      requestId,
      traceId,
      meta: { ...payload, status },
    });
  } catch (error) {
    logger.error(`The end of run ${run.id} could not be reported`, { error });
  }
}

/**
 * Returns the analytics event type of a run, or undefined for jobs and cancelled runs. A cancelled run neither
 * completed nor failed.
 */
function eventOf({ kind, status }: RunRecord): string | undefined {
  if (kind === 'job' || status === 'cancelled') return undefined;
  return status === 'succeeded' ? 'workflow.run.completed' : 'workflow.run.failed';
}

function countsOf(jobs: readonly JobRecord[]): JobCounts {
  const failed = jobs.filter(({ status }) => status === 'failed' || status === 'timed_out');
  return { total: jobs.length, failed: failed.length };
}
