import type { ChildHead, HandlerHead, InboxRecord, RunRecord, RunStore } from '../../ports/index.ts';
import type { PostgresDatabase } from '../database.ts';
import { readEvents, readLatestLogs, readLogs } from './history-rows.ts';
import { readAttempts, readJobs, readSteps } from './job-and-step-rows.ts';
import { runHours } from './run-hours.ts';
import { listHeads, listRuns } from './run-lists.ts';
import { SELECT_RUN } from './run-rows.ts';
import { findKeyed, RunStarts } from './run-starts.ts';
import { RunWriteBatches } from './run-write-batches.ts';
import { beginCleanUp, cancelIdle, deliver, deliveredDigest } from './run-writes.ts';
import { LIVE } from './schema.ts';

/** Store of runs with their jobs, steps, events and inbox. @spec Workflow run */
export function postgresRuns(database: PostgresDatabase): RunStore {
  const writes = new RunWriteBatches(database);
  const starts = new RunStarts(database);
  return {
    start: (run, options) => starts.start(run, options),
    keyed: (tenantId, key, now) => database.read((sql) => findKeyed(sql, tenantId, key, now)),
    write: (write) => writes.add(write),
    // A single snapshot keeps the run, its jobs, its steps and its inbox consistent.
    load: (seq) =>
      database.transact(async (sql) => {
        await sql('set transaction isolation level repeatable read read only');
        const [run] = await sql<RunRecord>(`${SELECT_RUN} where seq = :seq`, { seq });
        if (!run) return undefined;
        const inbox = await sql<InboxRecord>(
          `select n, kind, name, payload, at, sent_by as "sentBy", taken_by as "takenBy" from svc.run_inbox
           where run_seq = :seq and taken_by is null order by n`,
          { seq },
        );
        return { run, jobs: await readJobs(sql, seq), steps: await readSteps(sql, seq), inbox };
      }),
    find: (tenantId, id) =>
      database.read(async (sql) => {
        const [run] = await sql<RunRecord>(`${SELECT_RUN} where id = :id`, { id });
        return run && (tenantId === null || run.tenantId === tenantId) ? run : undefined;
      }),
    finished: (ids) =>
      database.read((sql) =>
        sql<RunRecord>(`${SELECT_RUN} where id = any(:ids) and finished_at is not null`, { ids }),
      ),
    list: (tenantId, filter) => database.lists.read((sql) => listRuns(sql, tenantId, filter)),
    ofTrace: (tenantId, traceId, limit) =>
      database.lists.read((sql) =>
        sql<RunRecord>(
          `${SELECT_RUN} where tenant_id = :tenantId and trace_id = :traceId order by seq limit :limit`,
          { tenantId, traceId, limit },
        ),
      ),
    countByHour: (tenantId, range) => database.lists.read((sql) => runHours(sql, tenantId, range)),
    heads: (tenantId, filter) => database.lists.read((sql) => listHeads(sql, tenantId, filter)),
    attempts: (seq) => database.read((sql) => readAttempts(sql, seq)),
    events: (seq, after, limit) => database.read((sql) => readEvents(sql, seq, after, limit)),
    latestLogs: (seq, before, limit) => database.read((sql) => readLatestLogs(sql, seq, before, limit)),
    logs: (seq, after, limit, step) => database.read((sql) => readLogs(sql, seq, after, limit, step)),
    children: (id, limit) =>
      database.read((sql) =>
        sql<ChildHead>(
          `select id, status, workflow_id as "workflowId", parent_step as "parentStep" from svc.run
           where parent_id = :id order by parent_step limit :limit`,
          { id, limit },
        ),
      ),
    // The character 0 follows the slash, so the range contains the keys of the run's tasks.
    handlers: (id) =>
      database.read((sql) =>
        sql<HandlerHead>(
          `select id, status, workflow_id as "workflowId" from svc.run
           where handles >= :id::text || '/' and handles < :id::text || '0' order by handles`,
          { id },
        ),
      ),
    openChildren: (id) =>
      database.read(async (sql) => {
        const rows = await sql<{ id: string }>(`select id from svc.run where parent_id = :id and ${LIVE}`, {
          id,
        });
        return rows.map((row) => row.id);
      }),
    deliver: (seq, entry, options) => database.transact((sql) => deliver(sql, seq, entry, options)),
    wasDelivered: (seq, key) =>
      database.read(async (sql) => (await deliveredDigest(sql, seq, key)) !== undefined),
    cancelIdle: (seq, at) => database.transact((sql) => cancelIdle(sql, seq, at)),
    beginCleanUp: (seq, at) => database.transact((sql) => beginCleanUp(sql, seq, at)),
  };
}
