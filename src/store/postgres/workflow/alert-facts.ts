import type { WaitingApproval, WorkflowStore } from '../../ports/index.ts';
import type { ConcurrentIndex } from '../concurrent-index.ts';
import type { PostgresDatabase } from '../database.ts';

/** Finds the runs that wait for an approval. */
export const RUN_APPROVAL: ConcurrentIndex = {
  name: 'run_approval',
  table: 'run',
  columns: 'seq',
  where: "status = 'waiting' and reason = 'approval'",
};

export function postgresWaitingApprovals(database: PostgresDatabase): WorkflowStore['waitingApprovals'] {
  return (before, limit, tenantId) =>
    database.read((sql) => sql<WaitingApproval>(WAITING, { before, limit, tenantId: tenantId ?? null }));
}

const WAITING = `
  select r.tenant_id as "tenantId", r.id as "runId", r.workflow_id as "workflowId", w.since from svc.run r, lateral (
    select min(coalesce(s.waiting_at, s.attempt_at, s.started_at)) as since from svc.step s
    where s.run_seq = r.seq and s.status = 'waiting' and s.wait::json ->> 'for' = 'approval'
  ) as w
  where r.status = 'waiting' and r.reason = 'approval' and w.since <= :before
    and (:tenantId::text is null or r.tenant_id = :tenantId) order by r.seq limit :limit`;
