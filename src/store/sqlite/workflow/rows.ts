import type { Database } from '../database.ts';
import { historyRows } from './history-rows.ts';
import { inboxRows } from './inbox-rows.ts';
import { jobAndStepRows } from './job-and-step-rows.ts';
import { largeValues } from './large-values.ts';
import { runRows } from './run-rows.ts';

/** Queries on all tables of a run. The queries must run inside `db.read` or `db.write`. */
export function workflowRows(db: Database) {
  const values = largeValues(db);
  return { ...runRows(db, values), ...jobAndStepRows(db, values), ...historyRows(db), ...inboxRows(db) };
}

export type WorkflowRows = ReturnType<typeof workflowRows>;
