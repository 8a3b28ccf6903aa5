import type { BootStore, IsPoison, RunRecord } from '../../ports/index.ts';
import type { Database } from '../database.ts';
import type { WorkflowKeys } from './keys.ts';
import { RUN_COLUMNS, type RunRow, type WorkflowRows } from './rows.ts';
import { LIVE, PARKED } from './schema.ts';

type Deaths = Pick<RunRecord, 'crashes' | 'kills'>;

/** Above every priority: interrupted runs precede new work. */
const RESUMED_RANK = 1000;

/** A limit that started after the last sign of life restarts in full. */
const MOVED_LIMIT = 'ending_at = ending_at + max(0, :now - max(:aliveAt, ending_at))';

/** Ownership of runs, and recovery of runs whose owner is dead. @spec Workflow run: interrupted */
export function sqliteBoots(db: Database, rows: WorkflowRows, keys: WorkflowKeys): BootStore {
  const sql = statements(db);

  /** Continues the clean-up. */
  function interruptCleanUp(row: RunRow, now: number, deaths: Deaths, isPoison: IsPoison): RunRecord {
    const { seq, ending } = row;
    const resumeCount = row.resumeCount + 1;
    if (!isPoison(deaths)) {
      sql.resumeCleanUp.run({ seq, now, ...deaths });
      rows.addEvents(seq, [
        { at: now, type: 'run.interrupted' },
        { at: now, type: 'run.resumed', data: { resumeCount } },
      ]);
      return rows.recordOf({ ...row, fence: null, wakeAt: now, ...deaths, resumeCount });
    }
    const status = ending ?? 'cancelled';
    const error = poison(deaths, 'The clean-up of the run');
    for (const end of sql.poisonParts) end.run({ seq, now, error });
    sql.poison.run({ seq, now, error, status });
    rows.addEvents(seq, [{ at: now, type: `run.${status}`, data: { reason: 'poison' } }]);
    if (row.parentId !== null) sql.wakeParent.run({ id: row.parentId, now });
    keys.promote(row.concurrencyKey);
    return rows.recordOf({ ...row, status, error, fence: null, ...deaths, finishedAt: now });
  }

  function interrupt(row: RunRow, now: number, isPoison: IsPoison): RunRecord {
    const { seq } = row;
    const { crashed, killed } = sql.blame.get({ seq, fence: row.fence! })!;
    const deaths = { crashes: row.crashes + crashed, kills: row.kills + killed };
    sql.interruptAttempts.run({ seq, now });
    sql.interruptSteps.run({ seq });
    sql.interruptJobs.run({ seq });
    if (row.status === 'cancelling') return interruptCleanUp(row, now, deaths, isPoison);
    sql.interrupt.run({ seq, crashed, killed });
    rows.addEvents(seq, [{ at: now, type: 'run.interrupted' }]);
    return rows.recordOf({ ...row, ...deaths, status: 'interrupted', fence: null });
  }

  function resume(row: RunRow, now: number, isPoison: IsPoison): RunRecord {
    const { seq } = row;
    if (isPoison(row)) {
      const error = poison(row, 'The run');
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
    begin: ({ bootId, pid, now, leaseMs, exclusive, hadFault, oomKills }) =>
      db.write(() => {
        sql.declareDead.run({ now, exclusive: exclusive ? 1 : 0, hadFault: hadFault ? 1 : 0, oomKills });
        return Number(
          sql.begin.run({ bootId, pid, now, leaseUntil: now + leaseMs, oomKills }).lastInsertRowid,
        );
      }),
    renew: (fence, lease) => db.write(() => sql.renew.run({ fence, ...lease }).changes === 1),
    async stopping(fence) {
      await db.write(() => sql.stopping.run({ fence }));
    },
    async end(fence, now) {
      await db.write(() => sql.end.run({ fence, now }));
    },
    interrupt: (now, limit, isPoison) =>
      db.write(() => sql.orphans.all({ limit }).map((row) => interrupt(row, now, isPoison))),
    resume: (now, limit, isPoison) =>
      db.write(() => sql.interrupted.all({ limit }).map((row) => resume(row, now, isPoison))),
    lastAlive: (leaseMs) => db.read(() => sql.lastAlive.get({ leaseMs }) ?? null),
    async resumeCleanUps({ aliveAt, now, wakeAt }) {
      await db.write(() => {
        sql.wakeCleanUps.run({ wakeAt });
        for (const move of sql.moveLimits) move.run({ aliveAt, now });
      });
    },
    leftToCancel: () => db.read(() => sql.leftToCancel.all()),
  };
}

function poison({ crashes, kills }: Deaths, what: string): string {
  const interruptions = crashes + kills;
  return JSON.stringify({
    code: 'STEP_FAILED',
    message: `${what} was interrupted ${interruptions} times without finishing a step in between (crashes of the workflow service: ${crashes}; kills: ${kills}); it probably crashes the service. Fix the step, then run it again.`,
    details: { reason: 'poison', interruptions, crashes, kills },
  });
}

function statements(db: Database) {
  type Seq = { seq: number };
  const unfinished = `status in ('pending', 'running', 'waiting', 'interrupted')`;
  return {
    // The kernel's count restarts at boot, so it can be smaller than the stored one.
    declareDead: db.prepare<[{ now: number; exclusive: 0 | 1; hadFault: 0 | 1; oomKills: number | null }]>(`
      update boot set ended_at = :now, had_fault = :hadFault = 1 or coalesce(oom_kills < :oomKills, 0)
      where ended_at is null and (:exclusive = 1 or lease_until < :now)`),
    begin: db.prepare<
      [{ bootId: string; pid: number; now: number; leaseUntil: number; oomKills: number | null }]
    >(`
      insert into boot (boot_id, pid, started_at, lease_until, oom_kills)
      values (:bootId, :pid, :now, :leaseUntil, :oomKills)`),
    renew: db.prepare<[{ fence: number; leaseUntil: number; oomKills: number | null }]>(`
      update boot set lease_until = :leaseUntil, oom_kills = :oomKills where fence = :fence and ended_at is null`),
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
    interrupt: db.prepare<[Seq & { crashed: number; killed: number }]>(`
      update run set status = 'interrupted', fence = null, wake_at = null, in_flight = 0, crashes = crashes + :crashed,
        kills = kills + :killed
      where seq = :seq`),
    // A run is blamed only if it had work in flight: waiting runs cannot crash the service, and an orderly
    // stop is no crash.
    blame: db.prepare<[Seq & { fence: number }], { crashed: 0 | 1; killed: 0 | 1 }>(`
      select had_fault * was_at_work as crashed, (1 - had_fault) * was_at_work as killed from (
        select boot.had_fault, not boot.is_stopping and (run.in_flight = 1 or exists (
          select 1 from step where run_seq = :seq and status = 'running' and attempt_at is not null)) as was_at_work
        from run join boot on boot.fence = :fence where run.seq = :seq)`),
    interruptJobs: db.prepare<[Seq]>(
      `update job set status = 'interrupted' where run_seq = :seq and status = 'running'`,
    ),
    interruptSteps: db.prepare<[Seq]>(
      `update step set status = 'interrupted' where run_seq = :seq and status = 'running'`,
    ),
    interruptAttempts: db.prepare<[Seq & { now: number }]>(`
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
      db.prepare<[Seq & { now: number }]>(`
        update job set status = 'cancelled', finished_at = :now where run_seq = :seq and ${unfinished}`),
      db.prepare<[Seq & { now: number }]>(`
        update step set status = 'cancelled', wait = null, wake_at = null, finished_at = :now
        where run_seq = :seq and ${unfinished}`),
    ],
    poison: db.prepare<[Seq & { now: number; error: string; status: string }]>(`
      update run set status = :status, fence = null, in_flight = 0, wake_at = null, ready = 0, reason = null, error = :error, finished_at = :now where seq = :seq`),
    resumeCleanUp: db.prepare<[Seq & { now: number } & Deaths]>(`
      update run set fence = null, wake_at = :now, in_flight = 0, crashes = :crashes, kills = :kills,
        resume_count = resume_count + 1
      where seq = :seq`),
    lastAlive: db
      .prepare<[{ leaseMs: number }], number | null>(
        'select max(case when ended_at is null then lease_until - :leaseMs else ended_at end) from boot',
      )
      .pluck(),
    // `LIVE` uses an index; `status = 'cancelling'` alone would scan every run.
    wakeCleanUps: db.prepare<[{ wakeAt: number }]>(
      `update run set wake_at = :wakeAt where ${LIVE} and status = 'cancelling' and fence is null`,
    ),
    moveLimits: [
      `update run set ${MOVED_LIMIT} where ${LIVE} and status = 'cancelling' and fence is null and ending_held_at is null`,
      `update job set ${MOVED_LIMIT} where ending_at is not null and finished_at is null and ending_held_at is null
        and exists (select 1 from run where seq = run_seq and fence is null)`,
    ].map((sql) => db.prepare<[{ aliveAt: number; now: number }]>(sql)),
    wakeParent: db.prepare<[{ id: string; now: number }]>(
      `update run set wake_at = :now where id = :id and ${PARKED}`,
    ),
  };
}
