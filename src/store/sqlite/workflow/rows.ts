import type {
  AttemptRecord,
  EventRecord,
  InboxRecord,
  JobRecord,
  LogLineRecord,
  Numbered,
  RunProgress,
  RunRecord,
  StepRecord,
} from '../../ports/index.ts';
import type { Database } from '../database.ts';
import { workflowValues } from './values.ts';

/** A run as SQLite returns it. */
export type RunRow = Omit<RunRecord, 'ready' | 'inFlight'> & { ready: 0 | 1; inFlight: 0 | 1 };

export const RUN_COLUMNS = `seq, id, kind, tenant_id as tenantId, workflow_id as workflowId, definition_hash as definitionHash,
  status, ready, reason, rank, priority, run_at as runAt, wake_at as wakeAt, deadline_at as deadlineAt,
  concurrency_key as concurrencyKey, concurrency_limit as concurrencyLimit, fence, resume_count as resumeCount, crashes, kills, in_flight as inFlight,
  trigger_kind as trigger, parent_id as parentId, parent_step as parentStep, rerun_of as rerunOf, depth,
  host_id as hostId, request_id as requestId, trace_id as traceId, parent_span as parentSpanId, created_at as createdAt, started_at as startedAt,
  finished_at as finishedAt, ending, ending_at as endingAt, ending_held_at as endingHeldAt, input, output, error`;

/** Items of one write that share a row: their ids are `row * 1000 + index`. */
const PACK = 1000;

type Seq = { seq: number };

interface UnreadSignals {
  count: number;
  bytes: number;
}

/** Queries for all tables of a run; call them inside `db.read` and `db.write`. */
export function workflowRows(db: Database) {
  const values = workflowValues(db);
  const sql = statements(db);

  function recordOf(row: RunRow): RunRecord {
    return {
      ...row,
      ready: row.ready === 1,
      inFlight: row.inFlight === 1,
      input: values.get(row.seq, row.input),
      output: values.get(row.seq, row.output),
      error: values.get(row.seq, row.error),
    };
  }
  const packed = (put: typeof sql.addEvents) => (seq: number, items: readonly unknown[]) => {
    for (let start = 0; start < items.length; start += PACK) {
      put.run({ seq, body: JSON.stringify(items.slice(start, start + PACK)) });
    }
  };
  const unpacked =
    <Item>(get: typeof sql.events) =>
    (seq: number, after: number, limit: number, matches: (item: Item) => boolean): Array<Numbered<Item>> => {
      const found: Array<Numbered<Item>> = [];
      for (const { n, body } of get.iterate({ seq, n: Math.floor(after / PACK) })) {
        for (const [place, item] of (JSON.parse(body) as Item[]).entries()) {
          const id = n * PACK + place;
          if (id > after && matches(item)) found.push({ id, item });
        }
        if (found.length >= limit) break;
      }
      return found.slice(0, limit);
    };

  /** A step's definition never changes: a large one is stored separately, with the first row only. */
  function foundOf(seq: number, { found, jobKey, index }: StepRecord): string | null {
    if (found === null || !values.isLarge(found)) return found;
    return sql.hasStep.get({ seq, jobKey, index }) ? null : values.put(seq, found);
  }

  return {
    recordOf,
    values,
    /** A large input is stored separately once the run has its number. */
    insertRun(run: Omit<RunRecord, 'seq'>): RunRecord {
      const runSeparately = values.isLarge(run.input);
      const row = {
        ...run,
        ready: run.ready ? 1 : 0,
        inFlight: 0,
        input: runSeparately ? 'null' : run.input,
      };
      const seq = Number(sql.insertRun.run(row).lastInsertRowid);
      if (runSeparately) sql.setInput.run({ seq, input: values.put(seq, run.input) });
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
    putJob(seq: number, job: JobRecord): void {
      sql.putJob.run({
        ...job,
        seq,
        outputs: values.put(seq, job.outputs),
        error: values.put(seq, job.error),
      });
    },
    putStep(seq: number, step: StepRecord): void {
      sql.putStep.run({
        ...step,
        seq,
        found: foundOf(seq, step),
        output: values.put(seq, step.output),
        error: values.put(seq, step.error),
      });
    },
    /** A first attempt that succeeded is derived from its step, which saves most attempt inserts. */
    putAttempt(seq: number, attempt: AttemptRecord): void {
      if (attempt.attempt === 1 && attempt.status === 'succeeded') return;
      sql.putAttempt.run({ ...attempt, seq, error: values.put(seq, attempt.error) });
    },
    addEvents: packed(sql.addEvents) as (seq: number, events: readonly EventRecord[]) => void,
    addLogs: packed(sql.addLogs) as (seq: number, lines: readonly LogLineRecord[]) => void,
    events: unpacked<EventRecord>(sql.events),
    logs: unpacked<LogLineRecord>(sql.logs),
    jobs: (seq: number): JobRecord[] =>
      sql.jobs.all({ seq }).map((job) => ({
        ...job,
        outputs: values.get(seq, job.outputs),
        error: values.get(seq, job.error),
      })),
    steps: (seq: number): StepRecord[] =>
      sql.steps.all({ seq }).map((step) => ({
        ...step,
        found: values.get(seq, step.found),
        output: values.get(seq, step.output),
        error: values.get(seq, step.error),
      })),
    attempts(seq: number): AttemptRecord[] {
      const written = sql.attempts.all({ seq });
      const known = new Set(written.map(({ jobKey, index }) => `${jobKey} ${index}`));
      const atOnce = sql.steps
        .all({ seq })
        .filter((step) => step.status === 'succeeded' && step.attempts === 1)
        .filter(({ jobKey, index }) => !known.has(`${jobKey} ${index}`))
        .map(firstTry);
      return [...written, ...atOnce].map((attempt) => ({
        ...attempt,
        error: values.get(seq, attempt.error),
      }));
    },
    inbox: (seq: number) => sql.inbox.all({ seq }),
    inInbox: (seq: number, kind: string, name: string) => sql.inInbox.get({ seq, kind, name }) !== undefined,
    unreadSignals: (seq: number): UnreadSignals => sql.unreadSignals.get({ seq })!,
    putInbox: (
      seq: number,
      entry: Omit<InboxRecord, 'n' | 'takenBy'>,
      { key = null, digest = null }: { key?: string | null; digest?: string | null } = {},
    ): number => sql.putInbox.get({ ...entry, seq, key, digest })!,
    /** The digest of the entry with this key. */
    digestInInbox: (seq: number, key: string) => sql.digestInInbox.get({ seq, key }),
    take: (seq: number, n: number, by: string): void => {
      sql.take.run({ seq, n, by });
    },
  };
}
export type WorkflowRows = ReturnType<typeof workflowRows>;

function firstTry(step: StepRecord): AttemptRecord {
  const finishedAt = step.finishedAt ?? 0;
  return {
    jobKey: step.jobKey,
    index: step.index,
    attempt: 1,
    status: 'succeeded',
    errorClass: null,
    error: null,
    queuedAt: step.queuedAt,
    startedAt: step.attemptAt ?? finishedAt,
    waitingAt: step.waitingAt,
    finishedAt,
  };
}

function statements(db: Database) {
  return {
    insertRun: db.prepare<[Record<string, unknown>]>(`
      insert into run (id, kind, tenant_id, workflow_id, definition_hash, status, ready, reason, rank, priority, run_at,
        wake_at, deadline_at, concurrency_key, concurrency_limit, fence, resume_count, crashes, trigger_kind, parent_id,
        parent_step, rerun_of, depth, host_id, request_id, trace_id, parent_span, created_at, started_at, finished_at, input, output, error)
      values (:id, :kind, :tenantId, :workflowId, :definitionHash, :status, :ready, :reason, :rank, :priority, :runAt,
        :wakeAt, :deadlineAt, :concurrencyKey, :concurrencyLimit, :fence, :resumeCount, :crashes, :trigger, :parentId,
        :parentStep, :rerunOf, :depth, :hostId, :requestId, :traceId, :parentSpanId, :createdAt, :startedAt, :finishedAt, :input, :output, :error)`),
    setInput: db.prepare<[{ seq: number; input: string }]>('update run set input = :input where seq = :seq'),
    progress: db.prepare<[Record<string, unknown>]>(`
      update run set status = :status, ready = :ready, reason = :reason, rank = :rank, wake_at = :wakeAt,
        deadline_at = :deadlineAt, fence = :fence, resume_count = :resumeCount, crashes = :crashes, kills = :kills, in_flight = :inFlight, ending = :ending, ending_at = :endingAt, ending_held_at = :endingHeldAt,
        output = :output, error = :error, started_at = :startedAt, finished_at = :finishedAt
      where seq = :seq`),
    holder: db.prepare<[Seq], { status: string; fence: number | null }>(
      'select status, fence from run where seq = :seq',
    ),
    putJob: db.prepare<[Record<string, unknown>]>(`
      insert into job (run_seq, key, job_id, status, matrix, outputs, error, started_at, finished_at, ending, ending_at,
        ending_held_at)
      values (:seq, :key, :jobId, :status, :matrix, :outputs, :error, :startedAt, :finishedAt, :ending, :endingAt,
        :endingHeldAt)
      on conflict (run_seq, key) do update set status = excluded.status, outputs = excluded.outputs,
        error = excluded.error, started_at = excluded.started_at, finished_at = excluded.finished_at,
        ending = excluded.ending, ending_at = excluded.ending_at, ending_held_at = excluded.ending_held_at`),
    putStep: db.prepare<[Record<string, unknown>]>(`
      insert into step (run_seq, job_key, idx, found, status, attempts, failures, output, error, wait, wake_at, idempotency_key,
        ready_at,
        started_at, queued_at, attempt_at, waiting_at, finished_at, end_order)
      values (:seq, :jobKey, :index, :found, :status, :attempts, :failures, :output, :error, :wait, :wakeAt, :idempotencyKey, :readyAt,
        :startedAt, :queuedAt, :attemptAt, :waitingAt, :finishedAt, :endOrder)
      on conflict (run_seq, job_key, idx) do update set status = excluded.status, attempts = excluded.attempts,
        failures = excluded.failures, output = excluded.output, error = excluded.error, wait = excluded.wait, wake_at = excluded.wake_at,
        idempotency_key = excluded.idempotency_key, ready_at = excluded.ready_at, started_at = excluded.started_at,
        queued_at = excluded.queued_at, attempt_at = excluded.attempt_at, waiting_at = excluded.waiting_at,
        finished_at = excluded.finished_at, end_order = excluded.end_order`),
    hasStep: db.prepare<[{ seq: number; jobKey: string; index: number }]>(
      'select 1 from step where run_seq = :seq and job_key = :jobKey and idx = :index',
    ),
    putAttempt: db.prepare<[Record<string, unknown>]>(`
      insert or replace into attempt (run_seq, job_key, idx, attempt, status, error_class, error, queued_at,
        started_at, waiting_at, finished_at)
      values (:seq, :jobKey, :index, :attempt, :status, :errorClass, :error, :queuedAt, :startedAt, :waitingAt, :finishedAt)`),
    addEvents: db.prepare<[{ seq: number; body: string }]>(
      'insert into run_event (run_seq, body) values (:seq, :body)',
    ),
    addLogs: db.prepare<[{ seq: number; body: string }]>(
      'insert into run_log (run_seq, body) values (:seq, :body)',
    ),
    events: db.prepare<[{ seq: number; n: number }], { n: number; body: string }>(
      'select id as n, body from run_event where run_seq = :seq and id >= :n order by id',
    ),
    logs: db.prepare<[{ seq: number; n: number }], { n: number; body: string }>(
      'select id as n, body from run_log where run_seq = :seq and id >= :n order by id',
    ),
    jobs: db.prepare<[Seq], JobRecord>(`
      select key, job_id as jobId, status, matrix, outputs, error, started_at as startedAt, finished_at as finishedAt,
        ending, ending_at as endingAt, ending_held_at as endingHeldAt
      from job where run_seq = :seq order by key`),
    steps: db.prepare<[Seq], StepRecord>(`
      select job_key as jobKey, idx as "index", found, status, attempts, failures, output, error, wait, wake_at as wakeAt,
        idempotency_key as idempotencyKey, ready_at as readyAt, started_at as startedAt, queued_at as queuedAt,
        attempt_at as attemptAt, waiting_at as waitingAt, finished_at as finishedAt, end_order as endOrder
      from step where run_seq = :seq order by job_key, idx`),
    attempts: db.prepare<[Seq], AttemptRecord>(`
      select job_key as jobKey, idx as "index", attempt, status, error_class as errorClass, error,
        queued_at as queuedAt, started_at as startedAt, waiting_at as waitingAt, finished_at as finishedAt
      from attempt where run_seq = :seq order by job_key, idx, attempt`),
    inbox: db.prepare<[Seq], InboxRecord>(`
      select n, kind, name, payload, at, taken_by as takenBy from inbox
      where run_seq = :seq and taken_by is null order by n`),
    inInbox: db.prepare<[{ seq: number; kind: string; name: string }]>(
      'select 1 from inbox where run_seq = :seq and kind = :kind and name = :name and taken_by is null',
    ),
    unreadSignals: db.prepare<[Seq], UnreadSignals>(`
      select count(*) as count, coalesce(sum(octet_length(payload)), 0) as bytes from inbox
      where run_seq = :seq and kind = 'signal' and taken_by is null`),
    putInbox: db
      .prepare<
        [Omit<InboxRecord, 'n' | 'takenBy'> & Seq & { key: string | null; digest: string | null }],
        number
      >(`
        insert into inbox (run_seq, n, kind, name, payload, at, key, digest)
        values (:seq, coalesce((select max(n) from inbox where run_seq = :seq), 0) + 1, :kind, :name, :payload, :at, :key, :digest)
        returning n`)
      .pluck(),
    digestInInbox: db
      .prepare<[{ seq: number; key: string }], string>(
        'select digest from inbox where run_seq = :seq and key = :key',
      )
      .pluck(),
    take: db.prepare<[{ seq: number; n: number; by: string }]>(
      'update inbox set taken_by = :by where run_seq = :seq and n = :n',
    ),
  };
}
