import type { RunEnding } from '../../../contracts/index.ts';
import { poisonError } from '../../poison-error.ts';
import type { IsPoison, RunRecord } from '../../ports/index.ts';
import type { Sql } from '../named-sql.ts';
import { lockKey, promoteKey } from './concurrency-keys.ts';
import { addEvents } from './history-rows.ts';
import { wakeRun } from './run-rows.ts';

/**
 * Rank of interrupted runs in the queue. The rank is above every priority, so that interrupted runs precede new runs.
 */
const RESUMED_RANK = 1000;
/** SQL that stores the counts of a run, and the fence of the process that held it if its end counts as a kill. */
const COUNTS = `crashes = :crashes, kills = :kills,
  killed_by = case when :kills::integer = kills then killed_by when kills = 0 then array[fence] else killed_by || fence end`;
const UNFINISHED = `status in ('pending', 'running', 'waiting', 'interrupted')`;

/** Marks a run whose owner is dead as interrupted, together with its jobs and steps in flight. */
export async function interruptRun(
  sql: Sql,
  run: RunRecord,
  now: number,
  isPoison: IsPoison,
): Promise<RunRecord> {
  const { seq } = run;
  const { crashed, killed } = await blame(sql, run);
  const deaths = { crashes: run.crashes + crashed, kills: run.kills + killed };
  await interruptParts(sql, seq, now);
  if (run.status === 'cancelling') return interruptCleanUp(sql, { ...run, ...deaths }, now, isPoison);
  await sql(
    `update svc.run set status = 'interrupted', fence = null, wake_at = null, in_flight = false, ${COUNTS}
     where seq = :seq`,
    { seq, ...deaths },
  );
  await addEvents(sql, seq, [{ at: now, type: 'run.interrupted' }]);
  return { ...run, ...deaths, status: 'interrupted', fence: null };
}

/** Queues an interrupted run before all other runs. Fails a run that has crashed the service too often. */
export async function resumeRun(
  sql: Sql,
  run: RunRecord,
  now: number,
  isPoison: IsPoison,
): Promise<RunRecord> {
  const { seq } = run;
  if (isPoison(run))
    return endAsPoison(sql, run, now, { status: 'failed', error: poisonError(run, 'The run') });
  const resumeCount = run.resumeCount + 1;
  await sql(
    `update svc.run set status = 'queued', ready = true, reason = 'capacity', rank = :rank, resume_count = :resumeCount
     where seq = :seq`,
    { seq, rank: RESUMED_RANK, resumeCount },
  );
  await addEvents(sql, seq, [{ at: now, type: 'run.resumed', data: { resumeCount } }]);
  return { ...run, status: 'queued', ready: true, reason: 'capacity', rank: RESUMED_RANK, resumeCount };
}

/**
 * Returns the crash or kill to count for a run. Only runs with work in flight count. An orderly stop counts as neither.
 */
async function blame(sql: Sql, { seq, fence }: RunRecord): Promise<{ crashed: 0 | 1; killed: 0 | 1 }> {
  const [row] = await sql<{ hadFault: boolean; wasAtWork: boolean }>(
    `select boot.had_fault as "hadFault", not boot.is_stopping and (run.in_flight or exists (
         select from svc.step where run_seq = :seq and status = 'running' and attempt_at is not null)) as "wasAtWork"
     from svc.run join svc.boot on boot.fence = :fence where run.seq = :seq`,
    { seq, fence },
  );
  const isBlamed = row?.wasAtWork ?? false;
  return { crashed: isBlamed && row!.hadFault ? 1 : 0, killed: isBlamed && !row!.hadFault ? 1 : 0 };
}

async function interruptParts(sql: Sql, seq: number, now: number): Promise<void> {
  await sql(
    `insert into svc.attempt (run_seq, job_key, idx, attempt, status, error_class, error, queued_at, started_at, waiting_at,
       finished_at)
     select run_seq, job_key, idx, attempts, 'interrupted', null, null, queued_at, attempt_at, waiting_at, :now::bigint
     from svc.step where run_seq = :seq and status = 'running'
     on conflict (run_seq, job_key, idx, attempt) do update set status = excluded.status,
       error_class = excluded.error_class, error = excluded.error, queued_at = excluded.queued_at,
       started_at = excluded.started_at, waiting_at = excluded.waiting_at, finished_at = excluded.finished_at`,
    { seq, now },
  );
  await sql(`update svc.step set status = 'interrupted' where run_seq = :seq and status = 'running'`, {
    seq,
  });
  await sql(`update svc.job set status = 'interrupted' where run_seq = :seq and status = 'running'`, { seq });
}

/** Makes an interrupted clean-up due again, unless the run has crashed the service too often. */
async function interruptCleanUp(
  sql: Sql,
  run: RunRecord,
  now: number,
  isPoison: IsPoison,
): Promise<RunRecord> {
  const { seq, crashes, kills } = run;
  if (isPoison(run)) {
    const error = poisonError(run, 'The clean-up of the run');
    return endAsPoison(sql, run, now, { status: run.ending ?? 'cancelled', error });
  }
  const resumeCount = run.resumeCount + 1;
  await sql(
    `update svc.run set fence = null, wake_at = :now, in_flight = false, resume_count = :resumeCount, ${COUNTS}
     where seq = :seq`,
    { seq, now, crashes, kills, resumeCount },
  );
  await addEvents(sql, seq, [
    { at: now, type: 'run.interrupted' },
    { at: now, type: 'run.resumed', data: { resumeCount } },
  ]);
  return { ...run, fence: null, wakeAt: now, resumeCount };
}

async function endAsPoison(
  sql: Sql,
  run: RunRecord,
  now: number,
  { status, error }: { status: RunEnding | 'failed'; error: string },
): Promise<RunRecord> {
  const { seq, parentId, concurrencyKey } = run;
  // The concurrency key is locked after the run here, against the usual order, so a deadlock is possible. After a
  // deadlock, one of the transactions is repeated.
  await lockKey(sql, concurrencyKey);
  for (const table of ['job', 'step'])
    await sql(
      `update svc.${table} set status = 'failed', error = :error, finished_at = :now
       where run_seq = :seq and status = 'interrupted'`,
      { seq, now, error },
    );
  await sql(
    `update svc.job set status = 'cancelled', finished_at = :now where run_seq = :seq and ${UNFINISHED}`,
    { seq, now },
  );
  await sql(
    `update svc.step set status = 'cancelled', wait = null, wake_at = null, finished_at = :now
     where run_seq = :seq and ${UNFINISHED}`,
    { seq, now },
  );
  await sql(
    `update svc.run set status = :status, fence = null, in_flight = false, wake_at = null, ready = false, reason = null,
       error = :error, crashes = :crashes, kills = :kills, finished_at = :now
     where seq = :seq`,
    { seq, now, error, status, crashes: run.crashes, kills: run.kills },
  );
  await addEvents(sql, seq, [{ at: now, type: `run.${status}`, data: { reason: 'poison' } }]);
  if (parentId !== null) await wakeRun(sql, parentId, now);
  await promoteKey(sql, concurrencyKey);
  return { ...run, status, error, fence: null, finishedAt: now };
}
