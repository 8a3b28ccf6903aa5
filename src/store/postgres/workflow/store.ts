import type { Clock } from '../../../kit/time/clock.ts';
import type { DefinitionRecord, WorkflowStore } from '../../ports/index.ts';
import type { PostgresDatabase } from '../database.ts';
import { PostgresMonitor } from '../database-health.ts';
import { PostgresMembers } from '../members.ts';
import { postgresWaitingApprovals } from './alert-facts.ts';
import { PostgresBoots } from './boots.ts';
import { postgresEndTasks } from './end-tasks.ts';
import { postgresPauses } from './pauses.ts';
import { postgresWorkflowRetention } from './retention.ts';
import { postgresRunQueue } from './run-queue.ts';
import { postgresRuns } from './runs.ts';
import { postgresSchedules } from './schedules.ts';
import { postgresSecretApprovals } from './secret-approvals.ts';
import { PostgresSharedRuns } from './shared-runs.ts';

/**
 * The workflow service's stores in PostgreSQL. Closing the store closes the database. `leaseClock` replaces the clock
 * of the database in tests.
 */
export function postgresWorkflowStore(database: PostgresDatabase, leaseClock?: Clock): WorkflowStore {
  return {
    runs: postgresRuns(database),
    queue: postgresRunQueue(database),
    boots: new PostgresBoots(database),
    shared: new PostgresSharedRuns(database),
    schedules: postgresSchedules(database),
    approvals: postgresSecretApprovals(database),
    endTasks: postgresEndTasks(database),
    pauses: postgresPauses(database),
    waitingApprovals: postgresWaitingApprovals(database),
    members: new PostgresMembers(database.reserved, leaseClock),
    definition: (hash) =>
      database.read(async (sql) => {
        const [definition] = await sql<DefinitionRecord>(
          'select hash, workflow_id as "workflowId", body from svc.definition where hash = :hash',
          { hash },
        );
        return definition;
      }),
    ...postgresWorkflowRetention(database),
    monitor: new PostgresMonitor(database),
    probe: () => database.reserved.probeWrites(),
    close: () => database.close(),
  };
}
