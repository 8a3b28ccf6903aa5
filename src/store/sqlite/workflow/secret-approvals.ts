import type { ApprovalKey, SecretApprovalRecord, SecretApprovalStore } from '../../ports/index.ts';
import type { Database } from '../database.ts';

export const SECRET_APPROVALS = `
  create table secret_approval (
    tenant_id text not null,
    workflow_id text not null,
    hash text not null,
    approved_by text not null,
    approved_at integer not null,
    primary key (tenant_id, workflow_id, hash)
  ) strict, without rowid;`;

/** Approvals of definitions that use secrets. @spec docs/secrets.md "In workflows" */
export function sqliteSecretApprovals(db: Database): SecretApprovalStore {
  const approve = db.prepare<[SecretApprovalRecord]>(`
    insert into secret_approval (tenant_id, workflow_id, hash, approved_by, approved_at)
    values (:tenantId, :workflowId, :hash, :approvedBy, :approvedAt)
    on conflict (tenant_id, workflow_id, hash) do update set
      approved_by = excluded.approved_by, approved_at = excluded.approved_at`);
  const prune = db.prepare<[ApprovalKey & { keep: number }]>(`
    delete from secret_approval where tenant_id = :tenantId and workflow_id = :workflowId and hash <> :hash
      and hash not in (
        select hash from secret_approval where tenant_id = :tenantId and workflow_id = :workflowId
        order by approved_at desc, hash limit :keep)`);
  const find = db.prepare<[ApprovalKey], SecretApprovalRecord>(`
    select tenant_id as tenantId, workflow_id as workflowId, hash, approved_by as approvedBy, approved_at as approvedAt
    from secret_approval where tenant_id = :tenantId and workflow_id = :workflowId and hash = :hash`);
  const keyOf = ({ tenantId, workflowId, hash }: ApprovalKey): ApprovalKey => ({
    tenantId,
    workflowId,
    hash,
  });
  return {
    approve: (approval, keep) =>
      db.write(() => {
        approve.run(approval);
        prune.run({ ...keyOf(approval), keep });
      }),
    find: (key) => db.read(() => find.get(keyOf(key))),
  };
}
