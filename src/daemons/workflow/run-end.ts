import type { Clock } from '../../kit/clock.ts';
import type { Logger } from '../../kit/logger.ts';
import type { RunRecord, WorkflowStore } from '../../store/ports/index.ts';
import type { WorkflowMetrics } from './metrics.ts';

/** Counts a run that ended and writes its analytics event. @spec Metrics; Analytics events: workflow.run.completed, workflow.run.failed */
export async function reportRunEnd(
  run: RunRecord,
  {
    store,
    metrics,
    logger,
    clock,
  }: { store: WorkflowStore; metrics: WorkflowMetrics; logger: Logger; clock: Clock },
): Promise<void> {
  const durationMs = (run.finishedAt ?? clock.now()) - (run.startedAt ?? run.createdAt);
  metrics.runEnded(run.workflowId, run.status, durationMs / 1000);
  const succeeded = run.status === 'succeeded';
  if (succeeded && !logger.isEnabled('info')) return;
  try {
    const jobs = (await store.runs.load(run.seq))?.jobs ?? [];
    const payload = {
      workflowId: run.workflowId,
      runId: run.id,
      durationMs,
      jobsTotal: jobs.length,
      jobsFailed: jobs.filter(({ status }) => status === 'failed' || status === 'timed_out').length,
    };
    logger.diagnostic(
      {
        domain: 'analytics',
        event: succeeded ? 'workflow.run.completed' : 'workflow.run.failed',
        level: 'info',
        reasonCode: run.status.toUpperCase(),
        message: `Run ${run.id} of ${run.workflowId} ${run.status}`,
        outcome: succeeded ? 'succeeded' : 'failed',
        evidence: payload,
      },
      { tenantId: run.tenantId, requestId: run.requestId, traceId: run.traceId },
    );
  } catch (error) {
    logger.error(`The end of run ${run.id} could not be reported`, { error });
  }
}
