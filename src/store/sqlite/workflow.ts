import { join } from 'node:path';
import type { Logger } from '../../kit/logger.ts';
import type { DefinitionRecord, WorkflowStore } from '../ports/index.ts';
import { openDatabase } from './database.ts';
import { sqliteBoots } from './workflow-boots.ts';
import { workflowKeys } from './workflow-keys.ts';
import { sqliteRunQueue } from './workflow-queue.ts';
import { sqliteRetention } from './workflow-retention.ts';
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
  const db = await openDatabase({
    file,
    migrations: WORKFLOW_MIGRATIONS,
    logger: options.logger,
    syncBeside: true,
  });
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
    ...sqliteRetention(db),
    close: () => db.close(),
  };
}
