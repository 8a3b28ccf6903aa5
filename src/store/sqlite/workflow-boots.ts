import type { BootStore, RunRecord } from '../ports/index.ts';
import type { Database } from './database.ts';
import type { WorkflowKeys } from './workflow-keys.ts';
import { RUN_COLUMNS, type RunRow, type WorkflowRows } from './workflow-rows.ts';
import { LIVE, PARKED } from './workflow-schema.ts';

/** Above every priority: what was interrupted goes before new work. */
const RESUMED_RANK = 1000;

/** Who holds runs, and what becomes of those whose holder is dead. @spec Workflow run: interrupted */
export function sqliteBoots(db: Database, rows: WorkflowRows, keys: WorkflowKeys): BootStore {
  const sql = statements(db);

  /** Its clean-up goes on, with all of its time. */
  function interruptCleanUp(row: RunRow, now: number, stalls: number, poisonAfter: number): RunRecord {
    const { seq, ending } = row;
    const resumeCount = row.resumeCount + 1;
    if (stalls < poisonAfter) {
      sql.resumeCleanUp.run({ seq, now, stalls });
      rows.addEvents(seq, [
        { at: now, type: 'run.interrupted' },
        { at: now, type: 'run.resumed', data: { resumeCount } },
      ]);
      return rows.recordOf({ ...row, fence: null, wakeAt: now, stalls, resumeCount, endingAt: null });
    }
    const status = ending ?? 'cancelled';
    const error = poison(stalls, 'The clean-up of the run');
    for (const end of sql.poisonParts) end.run({ seq, now, error });
    sql.poison.run({ seq, now, error, status });
    rows.addEvents(seq, [{ at: now, type: `run.${status}`, data: { reason: 'poison' } }]);
    if (row.parentId !== null) sql.wakeParent.run({ id: row.parentId, now });
    keys.promote(row.concurrencyKey);
    return rows.recordOf({ ...row, status, error, fence: null, stalls, finishedAt: now });
  }

  function interrupt(row: RunRow, now: number, poisonAfter: number): RunRecord {
    const { seq } = row;
    const stalled = sql.wasStalled.get({ seq, fence: row.fence! })!;
    sql.attemptsInAir.run({ seq, now });
    sql.interruptSteps.run({ seq });
    sql.interruptJobs.run({ seq });
    if (row.status === 'cancelling') return interruptCleanUp(row, now, row.stalls + stalled, poisonAfter);
    sql.interrupt.run({ seq, stalled });
    rows.addEvents(seq, [{ at: now, type: 'run.interrupted' }]);
    return rows.recordOf({ ...row, status: 'interrupted', fence: null, stalls: row.stalls + stalled });
  }

  function resume(row: RunRow, now: number, poisonAfter: number): RunRecord {
    const { seq } = row;
    if (row.stalls >= poisonAfter) {
      const error = poison(row.stalls, 'The run');
      for (const end of sql.poisonParts) end.run({ seq, now, error });
      sql.poison.run({ seq, now, error, status: 'failed' });
      rows.addEvents(seq, [{ at: now, type: 'run.failed', data: { reason: 'poison' } }]);
      if (row.parentId !== null) sql.wakeParent.run({ id: row.parentId, now });
      keys.promote(row.concurrencyKey);
      return rows.recordOf({ ...row, status: 'failed', error, finishedAt: now });
    }
    sql.resume.run({ seq, rank: RESUMED_RANK });
    const resumeCount = row.resumeCount + 1;
    rows.addEvents(seq, [{ at: now, type: 'run.resumed', data: { resumeCount } }]);
    return rows.recordOf({
      ...row,
      status: 'queued',
      ready: 1,
      reason: 'capacity',
      rank: RESUMED_RANK,
      resumeCount,
    });
  }

  return {
    begin: ({ bootId, pid, now, leaseMs, exclusive }) =>
      db.write(() => {
        sql.declareDead.run({ now, exclusive: exclusive ? 1 : 0 });
        return Number(sql.begin.run({ bootId, pid, now, leaseUntil: now + leaseMs }).lastInsertRowid);
      }),
    renew: (fence, leaseUntil) => db.write(() => sql.renew.run({ fence, leaseUntil }).changes === 1),
    async stopping(fence) {
      await db.write(() => sql.stopping.run({ fence }));
    },
    async end(fence, now) {
      await db.write(() => sql.end.run({ fence, now }));
    },
    interrupt: (now, limit, poisonAfter) =>
      db.write(() => sql.orphans.all({ limit }).map((row) => interrupt(row, now, poisonAfter))),
    resume: (now, limit, poisonAfter) =>
      db.write(() => sql.interrupted.all({ limit }).map((row) => resume(row, now, poisonAfter))),
    leftToCancel: () => db.read(() => sql.leftToCancel.all()),
  };
}

function poison(interruptions: number, what: string): string {
  return JSON.stringify({
    code: 'STEP_FAILED',
    message: `${what} was interrupted ${interruptions} times without finishing a step in between; it seems to bring the daemon down. Mend the step, then run it again.`,
    details: { reason: 'poison', interruptions },
  });
}

function statements(db: Database) {
  type Seq = { seq: number };
  const unfinished = `status in ('pending', 'running', 'waiting', 'interrupted')`;
  return {
    declareDead: db.prepare<[{ now: number; exclusive: 0 | 1 }]>(`
      update boot set ended_at = :now where ended_at is null and (:exclusive = 1 or lease_until < :now)`),
    begin: db.prepare<[{ bootId: string; pid: number; now: number; leaseUntil: number }]>(`
      insert into boot (boot_id, pid, started_at, lease_until) values (:bootId, :pid, :now, :leaseUntil)`),
    renew: db.prepare<[{ fence: number; leaseUntil: number }]>(
      'update boot set lease_until = :leaseUntil where fence = :fence and ended_at is null',
    ),
    stopping: db.prepare<[{ fence: number }]>('update boot set is_stopping = 1 where fence = :fence'),
    end: db.prepare<[{ fence: number; now: number }]>(
      'update boot set ended_at = :now where fence = :fence and ended_at is null',
    ),
    orphans: db.prepare<[{ limit: number }], RunRow>(`
      select ${RUN_COLUMNS} from run
      where fence is not null and fence in (select fence from boot where ended_at is not null) order by seq limit :limit`),
    interrupted: db.prepare<[{ limit: number }], RunRow>(
      `select ${RUN_COLUMNS} from run where status = 'interrupted' order by seq limit :limit`,
    ),
    leftToCancel: db
      .prepare<[], string>(`
        select id from run where parent_id is not null and ${LIVE} and
          (select parent.finished_at from run parent where parent.id = run.parent_id) is not null
        union all
        select id from run where gives_way = 1 and ${LIVE}`)
      .pluck(),
    interrupt: db.prepare<[Seq & { stalled: number }]>(`
      update run set status = 'interrupted', fence = null, wake_at = null, in_flight = 0, stalls = stalls + :stalled
      where seq = :seq`),
    // Runs whose steps wait for a slot, a signal or a time did not bring the service down, and no orderly stop is a fault.
    wasStalled: db
      .prepare<[Seq & { fence: number }], 0 | 1>(`
        select not (select is_stopping from boot where fence = :fence) and
          (in_flight = 1 or exists (select 1 from step where run_seq = :seq and status = 'running' and attempt_at is not null))
        from run where seq = :seq`)
      .pluck(),
    interruptJobs: db.prepare<[Seq]>(
      `update job set status = 'interrupted' where run_seq = :seq and status = 'running'`,
    ),
    interruptSteps: db.prepare<[Seq]>(
      `update step set status = 'interrupted' where run_seq = :seq and status = 'running'`,
    ),
    attemptsInAir: db.prepare<[Seq & { now: number }]>(`
      insert or replace into attempt (run_seq, job_key, idx, attempt, status, error_class, error, queued_at,
        started_at, waiting_at, finished_at)
      select run_seq, job_key, idx, attempts, 'interrupted', null, null, queued_at, attempt_at, waiting_at, :now
      from step where run_seq = :seq and status = 'running'`),
    resume: db.prepare<[Seq & { rank: number }]>(`
      update run set status = 'queued', ready = 1, reason = 'capacity', rank = :rank, resume_count = resume_count + 1
      where seq = :seq`),
    poisonParts: [
      ...['job', 'step'].map((table) =>
        db.prepare<[Seq & { now: number; error: string }]>(`
          update ${table} set status = 'failed', error = :error, finished_at = :now
          where run_seq = :seq and status = 'interrupted'`),
      ),
      ...['job', 'step'].map((table) =>
        db.prepare<[Seq & { now: number }]>(`
          update ${table} set status = 'cancelled', finished_at = :now where run_seq = :seq and ${unfinished}`),
      ),
    ],
    poison: db.prepare<[Seq & { now: number; error: string; status: string }]>(`
      update run set status = :status, fence = null, in_flight = 0, wake_at = null, ready = 0, reason = null, error = :error, finished_at = :now where seq = :seq`),
    resumeCleanUp: db.prepare<[Seq & { now: number; stalls: number }]>(`
      update run set fence = null, wake_at = :now, in_flight = 0, stalls = :stalls, ending_at = null,
        resume_count = resume_count + 1
      where seq = :seq`),
    wakeParent: db.prepare<[{ id: string; now: number }]>(
      `update run set wake_at = :now where id = :id and ${PARKED}`,
    ),
  };
}
