import { PlatformError } from '../../../../kit/errors/errors.ts';
import type { RunRecord, RunStore } from '../../../../store/ports/index.ts';

/**
 * Returns a run of the tenant. Background jobs are included, because an operator can decide the outcome of an
 * interrupted job. Throws WORKFLOW_RUN_NOT_FOUND.
 */
export async function requireRun(
  store: Pick<RunStore, 'find'>,
  tenantId: string,
  id: string,
): Promise<RunRecord> {
  const run = await store.find(tenantId, id);
  if (run) return run;
  throw new PlatformError('WORKFLOW_RUN_NOT_FOUND', `There is no run "${id}".`, { details: { runId: id } });
}
