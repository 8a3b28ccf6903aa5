import type { RunEnding } from '../../../contracts/index.ts';
import { poisonError } from '../../poison-error.ts';
import type { IsPoison, RunRecord } from '../../ports/index.ts';
import type { Database } from '../database.ts';
import type { RunRow } from './run-rows.ts';
import type { WorkflowTables } from './tables.ts';

type Deaths = Pick<RunRecord, 'crashes' | 'kills'>;

/** Rank of interrupted runs. The rank is higher than any priority, so that interrupted runs start before new runs. */
const RESUMED_RANK = 1000;

/** Interrupts and resumes runs whose owner process is dead. Methods must run inside `db.write`. */
export class Interruptions {
  readonly #sql: ReturnType<typeof statements>;
  readonly #tables: WorkflowTables;

  constructor(tables: WorkflowTables) {
    this.#tables = tables;
    this.#sql = statements(tables.db);
  }

  /** Marks a run of a dead process as interrupted, together with its jobs and steps in flight. */
  interrupt(row: RunRow, now: number, isPoison: IsPoison): RunRecord {
    const { seq } = row;
    const { crashed, killed } = this.#sql.blame.get({ seq, fence: row.fence! })!;
    const deaths = { crashes: row.crashes + crashed, kills: row.kills + killed };
    this.#sql.interruptAttempts.run({ seq, now });
    this.#sql.interruptSteps.run({ seq });
    this.#sql.interruptJobs.run({ seq });
    if (row.status === 'cancelling') return this.#interruptCleanUp(row, now, deaths, isPoison);
    this.#sql.interrupt.run({ seq, crashed, killed });
    this.#tables.rows.addEvents(seq, [{ at: now, type: 'run.interrupted' }]);
    return this.#tables.rows.recordOf({ ...row, ...deaths, status: 'interrupted', fence: null });
  }

  /** Queues an interrupted run before all new runs. A run that has caused too many crashes fails instead. */
  resume(row: RunRow, now: number, isPoison: IsPoison): RunRecord {
    const { seq } = row;
    if (isPoison(row)) {
      return this.#endAsPoison(row, now, { status: 'failed', error: poisonError(row, 'The run') });
    }
    this.#sql.resume.run({ seq, rank: RESUMED_RANK });
    const resumeCount = row.resumeCount + 1;
    this.#tables.rows.addEvents(seq, [{ at: now, type: 'run.resumed', data: { resumeCount } }]);
    return this.#tables.rows.recordOf({
      ...row,
      status: 'queued',
      ready: 1,
      reason: 'capacity',
      rank: RESUMED_RANK,
      resumeCount,
    });
  }

  /** Makes an interrupted clean-up due again. If the run has caused too many crashes, the run ends instead. */
  #interruptCleanUp(row: RunRow, now: number, deaths: Deaths, isPoison: IsPoison): RunRecord {
    const { seq, ending } = row;
    const resumeCount = row.resumeCount + 1;
    if (!isPoison(deaths)) {
      this.#sql.resumeCleanUp.run({ seq, now, ...deaths });
      this.#tables.rows.addEvents(seq, [
        { at: now, type: 'run.interrupted' },
        { at: now, type: 'run.resumed', data: { resumeCount } },
      ]);
      return this.#tables.rows.recordOf({ ...row, fence: null, wakeAt: now, ...deaths, resumeCount });
    }
    const status = ending ?? 'cancelled';
    const error = poisonError(deaths, 'The clean-up of the run');
    return this.#endAsPoison({ ...row, ...deaths }, now, { status, error });
  }

  #endAsPoison(
    row: RunRow,
    now: number,
    { status, error }: { status: RunEnding | 'failed'; error: string },
  ): RunRecord {
    const { seq, parentId } = row;
    for (const end of this.#sql.poisonParts) end.run({ seq, now, error });
    this.#sql.poison.run({ seq, now, error, status });
    this.#tables.rows.addEvents(seq, [{ at: now, type: `run.${status}`, data: { reason: 'poison' } }]);
    if (parentId !== null) this.#tables.rows.wake(parentId, now);
    this.#tables.keys.promote(row.concurrencyKey);
    return this.#tables.rows.recordOf({ ...row, status, error, fence: null, finishedAt: now });
  }
}

function statements(db: Database) {
  type Seq = { seq: number };
  const unfinished = `status in ('pending', 'running', 'waiting', 'interrupted')`;
  return {
    // A crash counts only for runs with work in flight. A normal shutdown never counts as a crash.
    blame: db.prepare<[Seq & { fence: number }], { crashed: 0 | 1; killed: 0 | 1 }>(`
      select had_fault * was_at_work as crashed, (1 - had_fault) * was_at_work as killed from (
        select boot.had_fault, not boot.is_stopping and (run.in_flight = 1 or exists (
          select 1 from step where run_seq = :seq and status = 'running' and attempt_at is not null)) as was_at_work
        from run join boot on boot.fence = :fence where run.seq = :seq)`),
    interruptAttempts: db.prepare<[Seq & { now: number }]>(`
      insert or replace into attempt (run_seq, job_key, idx, attempt, status, error_class, error, queued_at,
        started_at, waiting_at, finished_at)
      select run_seq, job_key, idx, attempts, 'interrupted', null, null, queued_at, attempt_at, waiting_at, :now
      from step where run_seq = :seq and status = 'running'`),
    interruptSteps: db.prepare<[Seq]>(
      `update step set status = 'interrupted' where run_seq = :seq and status = 'running'`,
    ),
    interruptJobs: db.prepare<[Seq]>(
      `update job set status = 'interrupted' where run_seq = :seq and status = 'running'`,
    ),
    interrupt: db.prepare<[Seq & { crashed: number; killed: number }]>(`
      update run set status = 'interrupted', fence = null, wake_at = null, in_flight = 0, crashes = crashes + :crashed,
        kills = kills + :killed
      where seq = :seq`),
    resume: db.prepare<[Seq & { rank: number }]>(`
      update run set status = 'queued', ready = 1, reason = 'capacity', rank = :rank, resume_count = resume_count + 1
      where seq = :seq`),
    resumeCleanUp: db.prepare<[Seq & { now: number } & Deaths]>(`
      update run set fence = null, wake_at = :now, in_flight = 0, crashes = :crashes, kills = :kills,
        resume_count = resume_count + 1
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
  };
}
