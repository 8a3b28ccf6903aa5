import { days } from '../../../kit/time/duration.ts';
import type { WorkflowStore } from '../../ports/index.ts';
import type { Database } from '../database.ts';
import { runHourPruning } from './run-hours.ts';

const PARTS = ['job', 'step', 'attempt', 'run_event', 'run_log', 'inbox', 'large_value'];

/**
 * Safety margin for a clock that was set back. After such a change, new runs can have earlier times than older runs.
 */
const CLOCK_MARGIN_MS = days(2);
/** Retention of run counts. The value exceeds one month, which is the longest period of a run limit. */
const USAGE_MS = days(40);
const MAX_DELETED_DEFINITIONS = 500;

type ScannedRun = { seq: number; finishedAt: number | null; createdAt: number; definitionHash: string };

/** Deletes runs that ended long ago, expired idempotency keys and unused definitions. */
export function sqliteRetention(
  db: Database,
): Pick<WorkflowStore, 'prune' | 'pruneKeys' | 'pruneDefinitions'> {
  // Runs are read in order of their numbers, so no index on the end time is needed.
  const oldest = db.prepare<[{ after: number; limit: number }], ScannedRun>(`
    select seq, finished_at as finishedAt, created_at as createdAt, definition_hash as definitionHash
    from run where seq > :after order by seq limit :limit`);
  const removals = [
    ...PARTS.map((table) => db.prepare<[{ seq: number }]>(`delete from ${table} where run_seq = :seq`)),
    db.prepare<[{ seq: number }]>('delete from run where seq = :seq'),
  ];
  const deleteKeys = db.prepare<[{ now: number; limit: number }]>(`
    delete from idempotency where (tenant_id, key) in (
      select tenant_id, key from idempotency where expires_at <= :now limit :limit)`);
  const deleteUsage = db.prepare<[{ before: string }]>('delete from usage where day < :before');
  const pruneHours = runHourPruning(db);
  const unused = db
    .prepare<[{ usedBefore: number }], string>('select hash from definition where used_at < :usedBefore')
    .pluck();
  const deleteDefinition = db.prepare<[{ hash: string }]>('delete from definition where hash = :hash');

  return {
    pruneKeys: ({ now, limit }) =>
      db.write(() => {
        deleteUsage.run({ before: new Date(now - USAGE_MS).toISOString().slice(0, 10) });
        pruneHours(now);
        return deleteKeys.run({ now, limit }).changes;
      }),
    prune: ({ finishedBefore, after, limit }) =>
      db.write(() => {
        const scanned = oldest.all({ after, limit });
        const isOver = ({ finishedAt }: ScannedRun) => finishedAt !== null && finishedAt < finishedBefore;
        const gone = scanned.filter(isOver);
        for (const { seq } of gone) for (const removal of removals) removal.run({ seq });
        const last = scanned.at(-1);
        const done = scanned.length < limit || last === undefined || last.createdAt >= finishedBefore;
        const stay = scanned.filter((run) => !isOver(run));
        const inUse = [...new Set(stay.map(({ definitionHash }) => definitionHash))];
        return { pruned: gone.length, next: done ? null : last.seq, inUse };
      }),
    pruneDefinitions: ({ usedBefore, inUse }) =>
      db.write(() => {
        const found = unused.all({ usedBefore: usedBefore - CLOCK_MARGIN_MS });
        const gone = found.filter((hash) => !inUse.has(hash)).slice(0, MAX_DELETED_DEFINITIONS);
        for (const hash of gone) deleteDefinition.run({ hash });
        return gone.length;
      }),
  };
}
