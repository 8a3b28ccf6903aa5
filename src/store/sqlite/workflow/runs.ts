import type { ChildHead, HandlerHead, RunHead, RunStore } from '../../ports/index.ts';
import type { Database } from '../database.ts';
import { LIVE } from './conditions.ts';
import { runHourCounts } from './run-hours.ts';
import { RunLists } from './run-lists.ts';
import { RUN_COLUMNS, type RunRow } from './run-rows.ts';
import { RunStarts } from './run-starts.ts';
import { RunWrites } from './run-writes.ts';
import type { WorkflowTables } from './tables.ts';

/** Store of runs with their jobs, steps, events and inbox. @spec Workflow run */
export function sqliteRuns(tables: WorkflowTables): RunStore {
  const { db, rows } = tables;
  const sql = statements(db);
  const starts = new RunStarts(tables);
  const writes = new RunWrites(tables);
  const lists = new RunLists(db);
  const countByHour = runHourCounts(db);
  return {
    start: (run, options) => db.write(() => starts.start(run, options)),
    keyed: (tenantId, key, now) => db.read(() => starts.keyed(tenantId, key, now)),
    write: (change) => db.write(() => writes.write(change)),
    load: (seq) =>
      db.read(() => {
        const row = sql.bySeq.get({ seq });
        return (
          row && {
            run: rows.recordOf(row),
            jobs: rows.jobs(seq),
            steps: rows.steps(seq),
            inbox: rows.inbox(seq),
          }
        );
      }),
    find: (tenantId, id) =>
      db.read(() => {
        const row = sql.byId.get({ id });
        return row && (tenantId === null || row.tenantId === tenantId) ? rows.recordOf(row) : undefined;
      }),
    finished: (ids) => db.read(() => sql.finished.all({ ids: JSON.stringify(ids) }).map(rows.recordOf)),
    list: (tenantId, filter) => lists.page(tenantId, filter, (seq) => rows.recordOf(sql.bySeq.get({ seq })!)),
    heads: (tenantId, filter) => lists.page(tenantId, filter, (seq) => sql.head.get({ seq })!),
    ofTrace: (tenantId, traceId, limit) =>
      db.read(() => sql.ofTrace.all({ tenantId, traceId, limit }).map(rows.recordOf)),
    countByHour: (tenantId, range) => db.read(() => countByHour(tenantId, range)),
    attempts: (seq) => db.read(() => rows.attempts(seq)),
    events: (seq, after, limit) => db.read(() => rows.events(seq, after, limit, () => true)),
    logs: (seq, after, limit, step) =>
      db.read(() => rows.logs(seq, after, limit, (line) => step === undefined || line.step === step)),
    latestLogs: (seq, before, limit) => db.read(() => rows.latestLogs(seq, before, limit)),
    children: (id, limit) => db.read(() => sql.children.all({ id, limit })),
    handlers: (id) => db.read(() => sql.handlers.all({ id })),
    openChildren: (id) => db.read(() => sql.openChildren.all({ id })),
    deliver: (seq, entry, options) => db.write(() => writes.deliver(seq, entry, options)),
    wasDelivered: (seq, key) => db.read(() => rows.digestInInbox(seq, key) !== undefined),
    cancelIdle: (seq, at) => db.write(() => writes.cancelIdle(seq, at)),
    beginCleanUp: (seq, at) => db.write(() => writes.beginCleanUp(seq, at)),
  };
}

function statements(db: Database) {
  const select = `select ${RUN_COLUMNS} from run`;
  return {
    bySeq: db.prepare<[{ seq: number }], RunRow>(`${select} where seq = :seq`),
    ofTrace: db.prepare<[{ tenantId: string; traceId: string; limit: number }], RunRow>(
      `${select} indexed by run_trace where tenant_id = :tenantId and trace_id = :traceId order by seq limit :limit`,
    ),
    head: db.prepare<[{ seq: number }], RunHead>(`
      select seq, id, status, workflow_id as workflowId, parent_id as parentId, created_at as createdAt,
        finished_at as finishedAt from run where seq = :seq`),
    byId: db.prepare<[{ id: string }], RunRow>(`${select} where id = :id`),
    finished: db.prepare<[{ ids: string }], RunRow>(
      `${select} where id in (select value from json_each(:ids)) and finished_at is not null`,
    ),
    children: db.prepare<[{ id: string; limit: number }], ChildHead>(
      `select id, status, workflow_id as workflowId, parent_step as parentStep from run where parent_id = :id
       order by parent_step limit :limit`,
    ),
    // The character 0 follows the slash, so the range contains the keys of the run's tasks.
    handlers: db.prepare<[{ id: string }], HandlerHead>(
      `select id, status, workflow_id as workflowId from run
       where handles >= :id || '/' and handles < :id || '0' order by handles`,
    ),
    openChildren: db
      .prepare<[{ id: string }], string>(`select id from run where parent_id = :id and ${LIVE}`)
      .pluck(),
  };
}
