import { join } from 'node:path';
import type { Logger } from '../../kit/logger.ts';
import type { DefinitionRecord, WorkflowStore } from '../ports/index.ts';
import { type Database, openDatabase } from './database.ts';
import { sqliteBoots } from './workflow-boots.ts';
import { workflowKeys } from './workflow-keys.ts';
import { sqliteRunQueue } from './workflow-queue.ts';
import { workflowRows } from './workflow-rows.ts';
import { sqliteRuns } from './workflow-runs.ts';
import { sqliteSchedules } from './workflow-schedules.ts';
import { WORKFLOW_MIGRATIONS } from './workflow-schema.ts';

export const WORKFLOW_FILE = 'workflow.db';

/** Opens `workflow.db`. Throws STORE_ERROR as openDatabase does. */
export async function sqliteWorkflowStore(options: {
  dataDir: string;
  logger: Logger;
}): Promise<WorkflowStore> {
  const file = join(options.dataDir, WORKFLOW_FILE);
  const db = await openDatabase({ file, migrations: WORKFLOW_MIGRATIONS, logger: options.logger });
  const rows = workflowRows(db);
  const keys = workflowKeys(db, rows);
  const definition = db.prepare<[{ hash: string }], DefinitionRecord>(
    'select hash, workflow_id as workflowId, body from definition where hash = :hash',
  );
  return {
    runs: sqliteRuns(db, rows, keys),
    queue: sqliteRunQueue(db, rows, keys),
    boots: sqliteBoots(db, rows, keys),
    schedules: sqliteSchedules(db),
    definition: (hash) => db.read(() => definition.get({ hash })),
    prune: pruning(db),
    close: () => db.close(),
  };
}

const PARTS = ['job', 'step', 'attempt', 'run_event', 'run_log', 'inbox', 'large_value'];

function pruning(db: Database): WorkflowStore['prune'] {
  // Runs lie in the order they came: going through them needs no index on the time of their end.
  const oldest = db.prepare<
    [{ after: number; limit: number }],
    { seq: number; finishedAt: number | null; createdAt: number }
  >(`
    select seq, finished_at as finishedAt, created_at as createdAt from run where seq > :after order by seq limit :limit`);
  const removals = [
    ...PARTS.map((table) => db.prepare<[{ seq: number }]>(`delete from ${table} where run_seq = :seq`)),
    db.prepare<[{ seq: number }]>('delete from run where seq = :seq'),
  ];
  const forgetKeys = db.prepare<[{ now: number; limit: number }]>(`
    delete from idempotency where (tenant_id, key) in (
      select tenant_id, key from idempotency where expires_at <= :now limit :limit)`);
  return ({ finishedBefore, now, after, limit }) =>
    db.write(() => {
      forgetKeys.run({ now, limit });
      const looked = oldest.all({ after, limit });
      const gone = looked.filter(({ finishedAt }) => finishedAt !== null && finishedAt < finishedBefore);
      for (const { seq } of gone) for (const removal of removals) removal.run({ seq });
      const last = looked.at(-1);
      const done = looked.length < limit || last === undefined || last.createdAt >= finishedBefore;
      return { pruned: gone.length, next: done ? null : last.seq };
    });
}
