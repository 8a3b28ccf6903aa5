import type { PlatformError } from '../../../../kit/errors/errors.ts';
import type { Random } from '../../../../kit/security/random.ts';
import type { Logger } from '../../../../kit/telemetry/logger.ts';
import { hours, seconds } from '../../../../kit/time/duration.ts';
import type { EndTask, RunRecord } from '../../../../store/ports/index.ts';
import { isTransientStart } from '../starts/transient-start.ts';

const MIN_RETRY_MS = seconds(1);
const MAX_RETRY_MS = seconds(60);
const MAX_SLOW_RETRY_MS = hours(1);
/** Errors that usually last for hours. */
const SLOW_ERRORS: ReadonlySet<string> = new Set(['WORKFLOW_NOT_FOUND', 'QUOTA_EXCEEDED']);

/**
 * Errors that can pass. A missing workflow may be registered by the next release of a plugin, and a concurrency key
 * becomes free. A gateway answers the other codes while it has an earlier version or another internal secret.
 */
const TRANSIENT: ReadonlySet<string> = new Set([
  ...['WORKFLOW_NOT_FOUND', 'CONCURRENT_LIMIT_EXCEEDED'],
  ...['UNAUTHORIZED', 'NOT_FOUND', 'METHOD_NOT_ALLOWED'],
]);

/** Returns whether a later attempt of a handler can succeed. */
export function isTransient(error: PlatformError): boolean {
  return TRANSIENT.has(error.code) || isTransientStart(error);
}

/** Returns the time until the next attempt of a handler. */
export function retryMs({ attempts }: EndTask, { code }: PlatformError, random: Random): number {
  const limit = SLOW_ERRORS.has(code) ? MAX_SLOW_RETRY_MS : MAX_RETRY_MS;
  const most = Math.min(limit, MIN_RETRY_MS * 2 ** Math.min(attempts - 1, 12));
  return Math.round(most * (0.5 + random.fraction() / 2));
}

/** Logs the first retry and the failure that ends the retries. */
export function reportFailure(
  logger: Logger,
  { handler, attempts }: EndTask,
  { id, workflowId, tenantId, requestId, traceId }: RunRecord,
  { error, isRetried }: { error: PlatformError; isRetried: boolean },
): void {
  if (isRetried && attempts > 1) return;
  logger.diagnostic(
    {
      domain: 'workflow',
      event: 'run.handler_failed',
      level: isRetried ? 'warn' : 'error',
      reasonCode: error.code,
      message: `Handler ${handler} of the end of run ${id} of "${workflowId}" failed${isRetried ? ' and is tried again' : ''}: ${error.message}`,
      outcome: isRetried ? 'degraded' : 'failed',
      evidence: { runId: id, workflowId, handler },
    },
    { tenantId, requestId, traceId },
  );
}

/** Logs that retention deleted a run whose handler has not acted. */
export function reportGone(logger: Logger, { handler, runId, attempts }: EndTask): void {
  logger.diagnostic({
    domain: 'workflow',
    event: 'run.handler_failed',
    level: 'error',
    reasonCode: 'WORKFLOW_RUN_NOT_FOUND',
    message: `Handler ${handler} of the end of run ${runId} did not act in ${attempts} attempts, because retention deleted the run. Raise retention.runsDays to retry for longer.`,
    outcome: 'failed',
    evidence: { runId, handler },
  });
}
