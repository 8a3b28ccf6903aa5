import type { DefinitionRecord, WorkflowStore } from '../../ports/index.ts';
import type { PostgresDatabase } from '../database.ts';
import { postgresBoots } from './boots.ts';
import { postgresWorkflowRetention } from './retention.ts';
import { postgresRunQueue } from './run-queue.ts';
import { postgresRuns } from './runs.ts';
import { postgresSchedules } from './schedules.ts';

/** The workflow service's stores in PostgreSQL. Closing the store closes the database. */
export function postgresWorkflowStore(database: PostgresDatabase): WorkflowStore {
  return {
    runs: postgresRuns(database),
    queue: postgresRunQueue(database),
    boots: postgresBoots(database),
    schedules: postgresSchedules(database),
    definition: (hash) =>
      database.read(async (sql) => {
        const [definition] = await sql<DefinitionRecord>(
          'select hash, workflow_id as "workflowId", body from svc.definition where hash = :hash',
          { hash },
        );
        return definition;
      }),
    ...postgresWorkflowRetention(database),
    close: () => database.close(),
  };
}
