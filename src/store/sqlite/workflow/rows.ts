import type { Database } from '../database.ts';
import { historyRows } from './history-rows.ts';
import { inboxRows } from './inbox-rows.ts';
import { partRows } from './job-and-step-rows.ts';
import { workflowValues } from './large-values.ts';
import { runRows } from './run-rows.ts';

/** Queries for all tables of a run. They must run inside `db.read` or `db.write`. */
export function workflowRows(db: Database) {
  const values = workflowValues(db);
  return { ...runRows(db, values), ...partRows(db, values), ...historyRows(db), ...inboxRows(db) };
}

export type WorkflowRows = ReturnType<typeof workflowRows>;
