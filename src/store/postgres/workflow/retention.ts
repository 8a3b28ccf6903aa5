import { days } from '../../../kit/time/duration.ts';
import type { WorkflowStore } from '../../ports/index.ts';
import type { PostgresDatabase } from '../database.ts';
import { lockName } from '../named-lock.ts';
import type { Sql } from '../named-sql.ts';
import { settleRunHours } from './run-hours.ts';

/** Tables that contain rows of a run, except `run` itself. */
const PARTS = ['job', 'step', 'attempt', 'run_event', 'run_log', 'run_inbox'];

/**
 * Safety margin for a clock that was set back. After such a change, a newer run can have an earlier time than older
 * runs.
 */
const CLOCK_MARGIN_MS = days(2);
/** Retention of run counts and of ended boots. The time must exceed a month, which is the longest period of a run limit. */
const USAGE_MS = days(40);
/** Maximum definitions deleted per transaction. */
const MAX_DEFINITIONS = 500;

/** Maximum rows of runs deleted per transaction. A run can have many thousands of log lines. */
const MAX_PART_ROWS = 5000;
/** Name of the lock with which one node at a time deletes. */
const LOCK = 'workflow retention';

interface ScannedRun {
  seq: number;
  finishedAt: number | null;
  createdAt: number;
  definitionHash: string;
}

/** Creates the functions that delete runs that ended long ago, and unreferenced definitions. */
export function postgresWorkflowRetention(
  database: PostgresDatabase,
): Pick<WorkflowStore, 'prune' | 'pruneKeys' | 'pruneDefinitions'> {
  return {
    pruneKeys: ({ now, limit }) =>
      database.transact(async (sql) => {
        await settleRunHours(sql, now);
        const before = new Date(now - USAGE_MS).toISOString().slice(0, 10);
        await sql(
          `delete from svc.run_usage where ctid = any(array(
             select ctid from svc.run_usage where day < :before order by day limit :limit))`,
          { before, limit },
        );
        await sql(
          `delete from svc.boot where ended_at < :before and not exists (select from svc.run where run.fence = boot.fence)`,
          { before: now - USAGE_MS },
        );
        const deleted = await sql(
          `delete from svc.idempotency_key where ctid = any(array(
             select ctid from svc.idempotency_key where expires_at <= :now order by expires_at limit :limit
             for update skip locked))
           returning 1`,
          { now, limit },
        );
        return deleted.length;
      }),
    prune: async ({ finishedBefore, after, limit }) => {
      // Runs are scanned in start order, so no index on their end time is needed.
      const scanned = await database.read((sql) =>
        sql<ScannedRun>(
          `select seq, finished_at as "finishedAt", created_at as "createdAt", definition_hash as "definitionHash"
           from svc.run where seq > :after order by seq limit :limit`,
          { after, limit },
        ),
      );
      const isOld = ({ finishedAt }: ScannedRun): boolean =>
        finishedAt !== null && finishedAt < finishedBefore;
      const old = scanned.filter(isOld).map(({ seq }) => seq);
      if (old.length > 0) await deleteRuns(database, old);
      const last = scanned.at(-1);
      const isDone = scanned.length < limit || last === undefined || last.createdAt >= finishedBefore;
      const kept = scanned.filter((run) => !isOld(run));
      const inUse = [...new Set(kept.map(({ definitionHash }) => definitionHash))];
      return { pruned: old.length, next: isDone ? null : last.seq, inUse };
    },
    pruneDefinitions: ({ usedBefore, inUse }) =>
      database.read(async (sql) => {
        const deleted = await sql(
          `delete from svc.definition where hash in (
             select hash from svc.definition where used_at < :before and hash <> all(:inUse::text[]) limit :limit)
           returning hash`,
          { before: usedBefore - CLOCK_MARGIN_MS, inUse: [...inUse], limit: MAX_DEFINITIONS },
        );
        return deleted.length;
      }),
  };
}

/** Deletes runs and their rows. The rows of large runs are deleted in several transactions. */
async function deleteRuns(database: PostgresDatabase, seqs: readonly number[]): Promise<void> {
  for (const part of PARTS) {
    for (let deleted = MAX_PART_ROWS; deleted === MAX_PART_ROWS; ) {
      deleted = await alone(database, async (sql) => {
        const rows = await sql(
          `delete from svc.${part} where ctid = any(array(
             select ctid from svc.${part} where run_seq = any(:seqs) limit ${MAX_PART_ROWS})) returning 1`,
          { seqs },
        );
        return rows.length;
      });
    }
  }
  await alone(database, (sql) => sql('delete from svc.run where seq = any(:seqs)', { seqs }));
}

/** Runs a short transaction after those of other nodes that delete. */
function alone<Result>(database: PostgresDatabase, work: (sql: Sql) => Promise<Result>): Promise<Result> {
  return database.transact(async (sql) => {
    await lockName(sql, LOCK);
    return work(sql);
  });
}
