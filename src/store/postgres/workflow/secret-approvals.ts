import type { SecretApprovalRecord, SecretApprovalStore } from '../../ports/index.ts';
import type { PostgresDatabase } from '../database.ts';

export const SECRET_APPROVALS = `
  create table svc.secret_approval (
    tenant_id text collate "C" not null,
    workflow_id text collate "C" not null,
    hash text collate "C" not null,
    approved_by text not null,
    approved_at bigint not null,
    primary key (tenant_id, workflow_id, hash)
  );`;

/** Approvals of definitions that use secrets. @spec docs/secrets.md "In workflows" */
export function postgresSecretApprovals(database: PostgresDatabase): SecretApprovalStore {
  return {
    approve: (approval, keep) =>
      database.transact(async (sql) => {
        await sql(
          `insert into svc.secret_approval (tenant_id, workflow_id, hash, approved_by, approved_at)
           values (:tenantId, :workflowId, :hash, :approvedBy, :approvedAt)
           on conflict (tenant_id, workflow_id, hash) do update set
             approved_by = excluded.approved_by, approved_at = excluded.approved_at`,
          approval,
        );
        await sql(
          `delete from svc.secret_approval where tenant_id = :tenantId and workflow_id = :workflowId and hash <> :hash
             and hash not in (
               select hash from svc.secret_approval where tenant_id = :tenantId and workflow_id = :workflowId
               order by approved_at desc, hash limit :keep)`,
          { ...approval, keep },
        );
      }),
    find: (key) =>
      database.read(async (sql) => {
        const [found] = await sql<SecretApprovalRecord>(
          `select tenant_id as "tenantId", workflow_id as "workflowId", hash, approved_by as "approvedBy",
             approved_at as "approvedAt"
           from svc.secret_approval where tenant_id = :tenantId and workflow_id = :workflowId and hash = :hash`,
          key,
        );
        return found;
      }),
  };
}
