import type { RunProgress, RunRecord } from '../../ports/index.ts';
import type { Database } from '../database.ts';
import { PARKED } from './conditions.ts';
import type { LargeValues } from './large-values.ts';

/** Row of a run as returned by SQLite, with the numbers 0 and 1 for booleans. */
export type RunRow = Omit<RunRecord, 'ready' | 'inFlight'> & { ready: 0 | 1; inFlight: 0 | 1 };

export const RUN_COLUMNS = `seq, id, kind, tenant_id as tenantId, workflow_id as workflowId, definition_hash as definitionHash,
  status, ready, reason, rank, priority, run_at as runAt, wake_at as wakeAt, deadline_at as deadlineAt,
  concurrency_key as concurrencyKey, concurrency_limit as concurrencyLimit, fence, resume_count as resumeCount, crashes, kills, in_flight as inFlight,
  trigger_kind as trigger, parent_id as parentId, parent_step as parentStep, rerun_of as rerunOf, depth,
  host_id as hostId, request_id as requestId, trace_id as traceId, delivery_id as deliveryId, parent_span as parentSpanId, created_at as createdAt, started_at as startedAt,
  finished_at as finishedAt, ending, ending_at as endingAt, ending_held_at as endingHeldAt, pause_scope as pauseScope, labels, end_tasks as endTasks, handles, handler_depth as handlerDepth, input, output, error`;

export function runRows(db: Database, values: LargeValues) {
  const sql = statements(db);
  return {
    recordOf: (row: RunRow): RunRecord => ({
      ...row,
      ready: row.ready === 1,
      inFlight: row.inFlight === 1,
      input: values.get(row.seq, row.input),
      output: values.get(row.seq, row.output),
      error: values.get(row.seq, row.error),
    }),
    /**
     * Inserts a run. A large input is stored in a separate table, and its row references the `seq` of the run.
     */
    insertRun(run: Omit<RunRecord, 'seq'>): RunRecord {
      const isLarge = values.isLarge(run.input);
      const row = {
        ...run,
        ready: run.ready ? 1 : 0,
        inFlight: 0,
        input: isLarge ? 'null' : run.input,
      };
      const seq = Number(sql.insertRun.run(row).lastInsertRowid);
      if (isLarge) sql.setInput.run({ seq, input: values.put(seq, run.input) });
      return { ...run, seq };
    },
    progress(seq: number, run: RunProgress): void {
      sql.progress.run({
        ...run,
        seq,
        ready: run.ready ? 1 : 0,
        inFlight: run.inFlight ? 1 : 0,
        output: values.put(seq, run.output),
        error: values.put(seq, run.error),
      });
    },
    holder: (seq: number) => sql.holder.get({ seq }),
    /** Sets the wake time of a waiting run or clean-up. A run that has an owner is unchanged. */
    wake: (id: string, at: number): void => {
      sql.wake.run({ id, at });
    },
  };
}

function statements(db: Database) {
  return {
    insertRun: db.prepare<[Record<string, unknown>]>(`
      insert into run (id, kind, tenant_id, workflow_id, definition_hash, status, ready, reason, rank, priority, run_at,
        wake_at, deadline_at, concurrency_key, concurrency_limit, fence, resume_count, crashes, trigger_kind, parent_id,
        parent_step, rerun_of, depth, host_id, request_id, trace_id, delivery_id, parent_span, created_at, started_at, finished_at, pause_scope, labels, end_tasks, handles, handler_depth, input, output, error)
      values (:id, :kind, :tenantId, :workflowId, :definitionHash, :status, :ready, :reason, :rank, :priority, :runAt,
        :wakeAt, :deadlineAt, :concurrencyKey, :concurrencyLimit, :fence, :resumeCount, :crashes, :trigger, :parentId,
        :parentStep, :rerunOf, :depth, :hostId, :requestId, :traceId, :deliveryId, :parentSpanId, :createdAt, :startedAt, :finishedAt, :pauseScope, :labels, :endTasks, :handles, :handlerDepth, :input, :output, :error)`),
    setInput: db.prepare<[{ seq: number; input: string }]>('update run set input = :input where seq = :seq'),
    // The pause of a workflow leaves runs that have begun alone, also if it was stored while the run was being claimed.
    progress: db.prepare<[Record<string, unknown>]>(`
      update run set status = :status, ready = :ready, reason = :reason, rank = :rank, wake_at = :wakeAt,
        deadline_at = :deadlineAt, fence = :fence, resume_count = :resumeCount, crashes = :crashes, kills = :kills, in_flight = :inFlight, ending = :ending, ending_at = :endingAt, ending_held_at = :endingHeldAt,
        output = :output, error = :error, started_at = :startedAt, finished_at = :finishedAt,
        pause_scope = nullif(pause_scope, 'workflow')
      where seq = :seq`),
    holder: db.prepare<[{ seq: number }], { status: string; fence: number | null }>(
      'select status, fence from run where seq = :seq',
    ),
    wake: db.prepare<[{ id: string; at: number }]>(
      `update run set wake_at = :at where id = :id and ${PARKED}`,
    ),
  };
}
