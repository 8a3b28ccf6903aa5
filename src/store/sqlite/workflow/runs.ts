import type { RunFilter, RunRecord, RunStore, RunWrite, WriteResult } from '../../ports/index.ts';
import type { Database } from '../database.ts';
import type { WorkflowKeys } from './keys.ts';
import { RUN_COLUMNS, type RunRow, type WorkflowRows } from './rows.ts';
import { LIVE, PARKED, STUCK } from './schema.ts';
import { workflowStart } from './start.ts';

/** Maximum rows scanned per list page: a rare status among a million runs must not block the service. */
const MAX_SCANNED_ROWS = 20_000;
const UNSUCCESSFUL = ['failed', 'timed_out', 'cancelled'];
const FINAL = new Set(['succeeded', ...UNSUCCESSFUL]);
const MAY_WAIT = new Set(['waiting', 'cancelling']);

/** Runs, their parts and their inbox. @spec Workflow run */
export function sqliteRuns(db: Database, rows: WorkflowRows, keys: WorkflowKeys): RunStore {
  const sql = statements(db);
  const starts = workflowStart(db, rows, keys);

  function write({ seq, expect, run, at, inboxSeen, ...parts }: RunWrite): WriteResult {
    const holder = rows.holder(seq);
    const mine = holder !== undefined && holder.fence === expect.fence && holder.status === expect.status;
    const claimer = expect.fence === null ? (run?.fence ?? null) : null;
    if (!mine || (claimer !== null && !sql.bootLives.get({ fence: claimer })))
      return { applied: false, promoted: [] };
    for (const job of parts.jobs) rows.putJob(seq, job);
    for (const step of parts.steps) rows.putStep(seq, step);
    for (const attempt of parts.attempts) rows.putAttempt(seq, attempt);
    rows.addEvents(seq, parts.events);
    rows.addLogs(seq, parts.logs);
    for (const { n, by } of parts.taken) rows.take(seq, n, by);
    if (run) rows.progress(seq, run);
    // Input that arrived before the run was parked did not wake it.
    const isParked = run?.fence === null && !FINAL.has(run.status);
    if (isParked && sql.hasNews.get({ seq, inboxSeen })) sql.wake.run({ seq, at });
    if (parts.wakeParent !== null) sql.wakeParent.run({ id: parts.wakeParent, at });
    return {
      applied: true,
      promoted: run && FINAL.has(run.status) ? keys.promote(sql.keyOf.get({ seq })!) : [],
    };
  }

  function cancelIdle(seq: number, at: number): { cancelled: boolean; promoted: RunRecord[] } {
    const holder = rows.holder(seq);
    if (!holder || holder.fence !== null || FINAL.has(holder.status))
      return { cancelled: false, promoted: [] };
    sql.cancelJobs.run({ seq, at });
    sql.cancelSteps.run({ seq, at });
    sql.cancel.run({ seq, at });
    const how = holder.status === 'waiting' ? [{ at, type: 'run.cancelling' }] : [];
    rows.addEvents(seq, [...how, { at, type: 'run.cancelled' }]);
    const parent = sql.parentOf.get({ seq });
    if (parent != null) sql.wakeParent.run({ id: parent, at });
    return { cancelled: true, promoted: keys.promote(sql.keyOf.get({ seq })!) };
  }

  function beginCleanUp(seq: number, at: number): boolean {
    const begun = sql.beginCleanUp.run({ seq, at }).changes === 1;
    if (begun) rows.addEvents(seq, [{ at, type: 'run.cancelling' }]);
    return begun;
  }

  function listed({ status, waitingReason }: RunFilter) {
    if (waitingReason === 'plugin') return sql.awaitsPlugin;
    if (waitingReason === 'decision') return sql.awaitsDecision;
    if (waitingReason !== undefined) return sql.live;
    if (status === undefined || status === 'succeeded') return sql.all;
    return UNSUCCESSFUL.includes(status) ? sql.unsuccessful : sql.live;
  }

  function list(tenantId: string, filter: RunFilter) {
    const { kind, status, waitingReason, workflowId, before, limit } = filter;
    const state = { tenantId, before: before ?? Number.MAX_SAFE_INTEGER };
    const query = listed(filter);
    const found: RunRecord[] = [];
    let scanned = 0;
    let last: number | null = null;
    for (const row of query.iterate(state)) {
      if (found.length === limit || scanned++ === MAX_SCANNED_ROWS) return { runs: found, next: last };
      last = row.seq;
      const matches =
        (kind === undefined || row.kind === kind) &&
        (status === undefined || row.status === status) &&
        (waitingReason === undefined || (MAY_WAIT.has(row.status) && row.reason === waitingReason)) &&
        (workflowId === undefined || row.workflowId === workflowId);
      if (matches) found.push(row as unknown as RunRecord);
    }
    return { runs: found, next: null };
  }

  return {
    start: (run, options) => db.write(() => starts.start(run, options)),
    keyed: (tenantId, key, now) => db.read(() => starts.keyed(tenantId, key, now)),
    write: (change) => db.write(() => write(change)),
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
    list: (tenantId, filter) =>
      db.read(() => {
        const { runs, next } = list(tenantId, filter);
        // Reads whole rows only for the result; the search reads just the compared columns.
        return { runs: runs.map(({ seq }) => rows.recordOf(sql.bySeq.get({ seq })!)), next };
      }),
    attempts: (seq) => db.read(() => rows.attempts(seq)),
    events: (seq, after, limit) => db.read(() => rows.events(seq, after, limit, () => true)),
    logs: (seq, after, limit, step) =>
      db.read(() => rows.logs(seq, after, limit, (line) => step === undefined || line.step === step)),
    openChildren: (id) => db.read(() => sql.openChildren.all({ id })),
    deliver: (seq, entry, { once, most, mostBytes, repeat }) =>
      db.write(() => {
        const before = repeat && rows.digestInInbox(seq, repeat.key);
        if (before !== undefined) return { outcome: before === repeat?.digest ? 'repeated' : 'different' };
        const holder = rows.holder(seq);
        if (!holder || FINAL.has(holder.status)) return { outcome: 'ended' };
        if (once && rows.inInbox(seq, entry.kind, entry.name)) return { outcome: 'taken' };
        if (entry.kind === 'signal') {
          const { count, bytes } = rows.unreadSignals(seq);
          const isFull = count >= most || bytes + Buffer.byteLength(entry.payload) > mostBytes;
          if (isFull) return { outcome: 'full' };
        }
        const n = rows.putInbox(seq, entry, repeat);
        rows.addEvents(seq, [{ at: entry.at, type: `${entry.kind}.received`, data: { name: entry.name } }]);
        sql.wake.run({ seq, at: entry.at });
        return { outcome: 'delivered', n };
      }),
    wasDelivered: (seq, key) => db.read(() => rows.digestInInbox(seq, key) !== undefined),
    cancelIdle: (seq, at) => db.write(() => cancelIdle(seq, at)),
    beginCleanUp: (seq, at) => db.write(() => beginCleanUp(seq, at)),
  };
}

type Listed = Pick<RunRow, 'seq' | 'kind' | 'status' | 'reason' | 'workflowId'>;
type ListState = { tenantId: string; before: number };

function statements(db: Database) {
  const select = `select ${RUN_COLUMNS} from run`;
  const listed = (condition: string) =>
    db.prepare<[ListState], Listed>(`
      select seq, kind, status, reason, workflow_id as workflowId from run
      where tenant_id = :tenantId and seq < :before ${condition} order by seq desc`);
  return {
    bySeq: db.prepare<[{ seq: number }], RunRow>(`${select} where seq = :seq`),
    byId: db.prepare<[{ id: string }], RunRow>(`${select} where id = :id`),
    finished: db.prepare<[{ ids: string }], RunRow>(
      `${select} where id in (select value from json_each(:ids)) and finished_at is not null`,
    ),
    openChildren: db
      .prepare<[{ id: string }], string>(`select id from run where parent_id = :id and ${LIVE}`)
      .pluck(),
    all: listed(''),
    live: listed(`and ${LIVE}`),
    awaitsPlugin: listed(`and ${STUCK} and reason = 'plugin'`),
    awaitsDecision: listed(`and ${STUCK} and reason = 'decision'`),
    unsuccessful: listed(`and status in ('failed', 'timed_out', 'cancelled')`),
    keyOf: db
      .prepare<[{ seq: number }], string | null>('select concurrency_key from run where seq = :seq')
      .pluck(),
    parentOf: db
      .prepare<[{ seq: number }], string | null>('select parent_id from run where seq = :seq')
      .pluck(),
    hasNews: db.prepare<[{ seq: number; inboxSeen: number }]>(`
      select 1 where
        exists (select 1 from inbox where run_seq = :seq and taken_by is null and n > :inboxSeen)
        or exists (
          select 1 from step join run child on child.id = step.wait ->> '$.runId'
          where step.run_seq = :seq and step.status = 'waiting' and child.finished_at is not null)`),
    bootLives: db.prepare<[{ fence: number }]>(
      'select 1 from boot where fence = :fence and ended_at is null',
    ),
    wakeParent: db.prepare<[{ id: string; at: number }]>(
      `update run set wake_at = :at where id = :id and ${PARKED}`,
    ),
    wake: db.prepare<[{ seq: number; at: number }]>(
      `update run set wake_at = :at where seq = :seq and ${PARKED}`,
    ),
    cancel: db.prepare<[{ seq: number; at: number }]>(`
      update run set status = 'cancelled', ready = 0, reason = null, wake_at = null, finished_at = :at where seq = :seq`),
    beginCleanUp: db.prepare<[{ seq: number; at: number }]>(`
      update run set status = 'cancelling', ending = 'cancelled', ending_at = null, ending_held_at = null, ready = 0, reason = null, wake_at = :at
      where seq = :seq and fence is null and started_at is not null and status in ('queued', 'waiting', 'interrupted')`),
    cancelJobs: db.prepare<[{ seq: number; at: number }]>(`
      update job set status = 'cancelled', finished_at = :at
      where run_seq = :seq and status in ('pending', 'waiting', 'interrupted', 'running')`),
    cancelSteps: db.prepare<[{ seq: number; at: number }]>(`
      update step set status = 'cancelled', wait = null, wake_at = null, finished_at = :at
      where run_seq = :seq and status in ('pending', 'waiting', 'interrupted', 'running')`),
  };
}
