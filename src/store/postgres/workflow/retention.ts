import { days } from '../../../kit/time/duration.ts';
import type { WorkflowStore } from '../../ports/index.ts';
import type { PostgresDatabase } from '../database.ts';

/** Tables that contain rows of a run, except `run` itself. */
const PARTS = ['job', 'step', 'attempt', 'run_event', 'run_log', 'run_inbox'];

/**
 * Safety margin for a clock that was set back. After such a change, a newer run can have an earlier time than older
 * runs.
 */
const CLOCK_MARGIN_MS = days(2);
/** Retention of run counts. The time must exceed a month, which is the longest period of a run limit. */
const USAGE_MS = days(40);
/** Maximum definitions deleted per transaction. */
const MAX_DEFINITIONS = 500;

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
        const before = new Date(now - USAGE_MS).toISOString().slice(0, 10);
        await sql('delete from svc.run_usage where day < :before', { before });
        const deleted = await sql(
          `delete from svc.idempotency_key where (tenant_id, key) in (
             select tenant_id, key from svc.idempotency_key where expires_at <= :now order by expires_at limit :limit
             for update skip locked)
           returning key`,
          { now, limit },
        );
        return deleted.length;
      }),
    prune: ({ finishedBefore, after, limit }) =>
      database.transact(async (sql) => {
        // Runs are scanned in start order, so no index on their end time is needed.
        const scanned = await sql<ScannedRun>(
          `select seq, finished_at as "finishedAt", created_at as "createdAt", definition_hash as "definitionHash"
           from svc.run where seq > :after order by seq limit :limit`,
          { after, limit },
        );
        const isOld = ({ finishedAt }: ScannedRun): boolean =>
          finishedAt !== null && finishedAt < finishedBefore;
        const seqs = scanned.filter(isOld).map(({ seq }) => seq);
        for (const part of PARTS) await sql(`delete from svc.${part} where run_seq = any(:seqs)`, { seqs });
        await sql('delete from svc.run where seq = any(:seqs)', { seqs });
        const last = scanned.at(-1);
        const isDone = scanned.length < limit || last === undefined || last.createdAt >= finishedBefore;
        const kept = scanned.filter((run) => !isOld(run));
        const inUse = [...new Set(kept.map(({ definitionHash }) => definitionHash))];
        return { pruned: seqs.length, next: isDone ? null : last.seq, inUse };
      }),
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
