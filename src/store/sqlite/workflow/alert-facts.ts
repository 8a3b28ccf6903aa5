import { type AlertFactRow, factOf } from '../../alert-sql.ts';
import type { NewAlertFact, RunFactStore, WaitingApproval, WorkflowStore } from '../../ports/index.ts';
import type { Database } from '../database.ts';
import { ALERT_FACTS } from '../svc/alerts/schema.ts';

/** Facts about failed runs, and an index of the runs that wait for an approval. Child runs count with their parent. */
export const FAILED_RUN_FACTS = `
  ${ALERT_FACTS}
  create trigger run_failed_fact after update of status on run
  when new.status in ('failed', 'timed_out') and old.status <> new.status and new.parent_id is null begin
    insert into alert_fact (kind, namespace_id, object_id, body, at)
    values ('run.failed', new.tenant_id, new.id,
      json_object('workflow', new.workflow_id, 'run', new.kind, 'status', new.status),
      coalesce(new.finished_at, cast(unixepoch('subsec') * 1000 as integer)));
  end;
  create index run_approval on run (seq) where status = 'waiting' and reason = 'approval';`;

/** Facts about runs whose rerun has succeeded. */
export const RECOVERED_RUN_FACTS = `
  create trigger run_recovered_fact after update of status on run
  when new.status = 'succeeded' and old.status <> 'succeeded' and new.rerun_of is not null begin
    insert into alert_fact (kind, namespace_id, object_id, body, at)
    select 'run.recovered', new.tenant_id, new.rerun_of, '{}',
      coalesce(new.finished_at, cast(unixepoch('subsec') * 1000 as integer))
    where exists (select 1 from run where id = new.rerun_of and status in ('failed', 'timed_out'));
  end;`;

/** The runs that the object of a fact repeats, nearest first. */
const RUN_ORIGINS = `case when kind in ('run.failed', 'run.recovered') then (
    with recursive origin (id) as (
      select rerun_of from run where id = object_id and rerun_of is not null
      union
      select r.rerun_of from run r join origin o on r.id = o.id where r.rerun_of is not null)
    select json_group_array(id) from origin) end`;

/** The number of a fact is a cursor, because a file has one writer at a time. */
export function sqliteRunFacts(db: Database): RunFactStore {
  const read = db.prepare<[object], AlertFactRow>(
    `select seq, kind, namespace_id as namespaceId, object_id as objectId, body, at, ${RUN_ORIGINS} as origins from alert_fact
     where seq > :after order by seq limit :limit`,
  );
  const remove = db.prepare<[object]>('delete from alert_fact where seq <= :after');
  return {
    read: async (after, limit) => {
      if (after > 0) await db.write(() => remove.run({ after }));
      return (await db.read(() => read.all({ after, limit }))).map(factOf);
    },
  };
}

/** Returns the function that adds a fact within a transaction. */
export function factWriter(db: Database): (fact: NewAlertFact) => void {
  const add = db.prepare<[NewAlertFact]>(
    `insert into alert_fact (kind, namespace_id, object_id, body, at)
     values (:kind, :namespaceId, :objectId, :body, :at)`,
  );
  return (fact) => void add.run(fact);
}

export function sqliteWaitingApprovals(db: Database): WorkflowStore['waitingApprovals'] {
  const find = db.prepare<[object], WaitingApproval>(`
    select tenant_id as tenantId, id as runId, workflow_id as workflowId, since from (
      select r.tenant_id, r.id, r.workflow_id, (
        select min(coalesce(s.waiting_at, s.attempt_at, s.started_at)) from step s
        where s.run_seq = r.seq and s.status = 'waiting' and json_extract(s.wait, '$.for') = 'approval') as since
      from run r where r.status = 'waiting' and r.reason = 'approval' and (:tenantId is null or r.tenant_id = :tenantId)
      order by r.seq
    ) where since <= :before limit :limit`);
  return (before, limit, tenantId) => db.read(() => find.all({ before, limit, tenantId: tenantId ?? null }));
}
