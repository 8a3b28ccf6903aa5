import { join } from 'node:path';
import type { Logger } from '../../../kit/telemetry/logger.ts';
import { type Clock, systemClock } from '../../../kit/time/clock.ts';
import type { DefinitionRecord, WorkflowStore } from '../../ports/index.ts';
import { openDatabase } from '../database.ts';
import { sqliteMembers } from '../members.ts';
import { sqliteRunFacts, sqliteWaitingApprovals } from './alert-facts.ts';
import { sqliteBoots } from './boots.ts';
import { sqliteEndTasks } from './end-tasks.ts';
import { sqlitePauses } from './pauses.ts';
import { sqliteRetention } from './retention.ts';
import { sqliteRunQueue } from './run-queue.ts';
import { sqliteRuns } from './runs.ts';
import { sqliteSchedules } from './schedules.ts';
import { WORKFLOW_MIGRATIONS } from './schema.ts';
import { sqliteSecretApprovals } from './secret-approvals.ts';
import { workflowTables } from './tables.ts';

export const WORKFLOW_FILE = 'workflow.db';

/** Opens `workflow.db`. Throws STORE_ERROR if the file cannot be used. */
export async function sqliteWorkflowStore(options: {
  dataDir: string;
  logger: Logger;
  /** Clock of the store, used for leases. */
  clock?: Clock;
}): Promise<WorkflowStore> {
  const file = join(options.dataDir, WORKFLOW_FILE);
  const db = await openDatabase({
    file,
    migrations: WORKFLOW_MIGRATIONS,
    logger: options.logger,
    syncBeside: true,
  });
  const tables = workflowTables(db);
  const definition = db.prepare<[{ hash: string }], DefinitionRecord>(
    'select hash, workflow_id as workflowId, body from definition where hash = :hash',
  );
  return {
    runs: sqliteRuns(tables),
    queue: sqliteRunQueue(tables),
    boots: sqliteBoots(tables),
    schedules: sqliteSchedules(db),
    approvals: sqliteSecretApprovals(db),
    endTasks: sqliteEndTasks(tables),
    pauses: sqlitePauses(tables),
    facts: sqliteRunFacts(db),
    waitingApprovals: sqliteWaitingApprovals(db),
    members: sqliteMembers(db, options.clock ?? systemClock),
    definition: (hash) => db.read(() => definition.get({ hash })),
    ...sqliteRetention(db),
    probe: () => db.write(() => {}),
    close: () => db.close(),
  };
}
