import { DEFINITION_USE_MS, NEW_PROGRESS } from '../../new-run.ts';
import type { NewRun, RunRecord, StartOptions } from '../../ports/index.ts';
import type { Sql } from '../named-sql.ts';
import { historyBodies } from './history-rows.ts';
import { jsonArray, rowJson } from './part-rows.ts';

/** A run to be inserted. `hasRoom` is false if the run waits for its concurrency key. */
export interface RunInsert {
  run: NewRun;
  options: Pick<StartOptions, 'definition' | 'idempotency' | 'day'>;
  hasRoom: boolean;
  /** Whether the workflow is paused, if the transaction has read it already. */
  isPaused?: boolean | undefined;
}

const COLUMNS = `id, kind, tenant_id, workflow_id, definition_hash, status, ready, reason, rank, priority, run_at, wake_at,
  deadline_at, concurrency_key, concurrency_limit, gives_way, fence, resume_count, crashes, kills, in_flight, trigger_kind,
  parent_id, parent_step, rerun_of, depth, host_id, request_id, trace_id, delivery_id, parent_span, created_at, labels, end_tasks, handles,
  handler_depth, input, notices, notices_read, pause_scope`;

const PAUSE_SCOPE = `coalesce(pause_scope, (
  select 'workflow' from pause
  where pause.tenant_id = next.tenant_id and pause.workflow_id = next.workflow_id and holds))`;

/**
 * Inserts runs in one statement. A definition that was used recently is not locked, because the lock would make all
 * starts of its workflow wait for each other.
 */
const INSERT = `with used as (
    insert into svc.definition as kept (hash, workflow_id, body, used_at)
    select hash, workflow_id, body, used_at from json_populate_recordset(null::svc.definition, :definitions) as next
    where not exists (
      select from svc.definition as known where known.hash = next.hash and known.used_at >= next.used_at - ${DEFINITION_USE_MS}
    ) order by hash
    on conflict (hash) do update set used_at = greatest(kept.used_at, excluded.used_at)
  ), pause as materialized (
    select tenant_id, workflow_id, svc.is_workflow_paused(tenant_id, workflow_id) as holds
    from json_to_recordset(:workflows) as started (tenant_id text collate "C", workflow_id text)
  ), inserted as (
    insert into svc.run (${COLUMNS})
    select ${COLUMNS.replace('pause_scope', PAUSE_SCOPE)} from json_populate_recordset(null::svc.run, :runs) as next
    returning seq, id, pause_scope
  ), queued as (
    insert into svc.run_event (run_seq, body)
    select seq, body from inserted join json_to_recordset(:events) as event (id text, body text) using (id)
  ), keyed as (
    insert into svc.idempotency_key (tenant_id, key, digest, run_id, expires_at)
    select tenant_id, key, digest, run_id, expires_at from json_populate_recordset(null::svc.idempotency_key, :keys)
    on conflict (tenant_id, key) do update set digest = excluded.digest, run_id = excluded.run_id,
      expires_at = excluded.expires_at
  ), counted as (
    insert into svc.run_usage as total (tenant_id, day, runs)
    select tenant_id, day, runs from json_populate_recordset(null::svc.run_usage, :usage) order by tenant_id, day
    on conflict (tenant_id, day) do update set runs = total.runs + excluded.runs
  )
  select seq, id, pause_scope as "pauseScope" from inserted`;

export function isScheduled({ runAt, createdAt }: NewRun): boolean {
  return runAt !== null && runAt > createdAt;
}

export function bytesOf({ run, options }: RunInsert): number {
  return run.input.length + options.definition.body.length;
}

/** Inserts runs, and counts them for the limits of their tenants. Returns the runs in the given order. */
export async function insertRuns(sql: Sql, inserts: readonly RunInsert[]): Promise<RunRecord[]> {
  const runs = inserts.map(newRecord);
  const events = runs.map(({ id, createdAt, reason }) => {
    const [body] = historyBodies([{ at: createdAt, type: 'run.queued', data: { reason } }]);
    return rowJson({ id, body });
  });
  const values = {
    runs: jsonArray(runs.map(runRow)),
    events: jsonArray(events),
    definitions: jsonArray(definitionRows(inserts)),
    workflows: jsonArray(workflowRows(inserts)),
    keys: jsonArray(inserts.flatMap(keyRow)),
    usage: jsonArray(usageRows(inserts)),
  };
  const rows = await sql<Pick<RunRecord, 'seq' | 'id' | 'pauseScope'>>(INSERT, values, 'insert runs');
  const inserted = new Map(rows.map((row) => [row.id, row]));
  return runs.map((run) => ({ ...run, ...inserted.get(run.id)! }));
}

function newRecord({ run, hasRoom, isPaused = false }: RunInsert): Omit<RunRecord, 'seq'> {
  const isLater = isScheduled(run);
  const ready = hasRoom && !isLater;
  return {
    ...run,
    ...NEW_PROGRESS,
    pauseScope: isPaused ? 'workflow' : null,
    ready,
    reason: isLater ? 'scheduled' : ready ? 'capacity' : 'concurrency',
    rank: run.priority,
    wakeAt: isLater ? run.runAt : null,
  };
}

function runRow(run: Omit<RunRecord, 'seq'>): string {
  return rowJson({
    id: run.id,
    kind: run.kind,
    tenant_id: run.tenantId,
    workflow_id: run.workflowId,
    definition_hash: run.definitionHash,
    status: run.status,
    ready: run.ready,
    reason: run.reason,
    rank: run.rank,
    priority: run.priority,
    run_at: run.runAt,
    wake_at: run.wakeAt,
    deadline_at: run.deadlineAt,
    concurrency_key: run.concurrencyKey,
    concurrency_limit: run.concurrencyLimit,
    gives_way: false,
    fence: run.fence,
    resume_count: run.resumeCount,
    crashes: run.crashes,
    kills: run.kills,
    in_flight: run.inFlight,
    trigger_kind: run.trigger,
    parent_id: run.parentId,
    parent_step: run.parentStep,
    rerun_of: run.rerunOf,
    depth: run.depth,
    host_id: run.hostId,
    request_id: run.requestId,
    trace_id: run.traceId,
    delivery_id: run.deliveryId,
    parent_span: run.parentSpanId,
    created_at: run.createdAt,
    labels: run.labels,
    end_tasks: run.endTasks,
    handles: run.handles,
    handler_depth: run.handlerDepth,
    input: run.input,
    notices: 0,
    notices_read: 0,
    pause_scope: run.pauseScope,
  });
}

/** Returns each definition once, because one statement can write a row only once. */
function definitionRows(inserts: readonly RunInsert[]): string[] {
  const rows = new Map<string, string>();
  for (const { run, options } of inserts) {
    const { hash, workflowId, body } = options.definition;
    if (!rows.has(hash))
      rows.set(hash, rowJson({ hash, workflow_id: workflowId, body, used_at: run.createdAt }));
  }
  return [...rows.values()];
}

/** Returns each workflow whose pause must be read once. */
function workflowRows(inserts: readonly RunInsert[]): string[] {
  const unread = inserts.filter(({ isPaused }) => isPaused === undefined);
  const rows = unread.map(({ run }) => rowJson({ tenant_id: run.tenantId, workflow_id: run.workflowId }));
  return [...new Set(rows)].toSorted();
}

function keyRow({ run, options: { idempotency } }: RunInsert): string[] {
  if (!idempotency) return [];
  const { key, digest, expiresAt } = idempotency;
  return [rowJson({ tenant_id: run.tenantId, key, digest, run_id: run.id, expires_at: expiresAt })];
}

function usageRows(inserts: readonly RunInsert[]): string[] {
  const counts = Map.groupBy(inserts, ({ run, options }) => JSON.stringify([run.tenantId, options.day]));
  return [...counts.values()].map((counted) => {
    const [{ run, options }] = counted as [RunInsert];
    return rowJson({ tenant_id: run.tenantId, day: options.day, runs: counted.length });
  });
}
