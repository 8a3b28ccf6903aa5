import type { Database } from '../database.ts';
import { type ConcurrencyKeys, concurrencyKeys } from './concurrency-keys.ts';
import { type WorkflowRows, workflowRows } from './rows.ts';

/** The open `workflow.db` with the queries that its stores share. */
export interface WorkflowTables {
  db: Database;
  rows: WorkflowRows;
  keys: ConcurrencyKeys;
}

export function workflowTables(db: Database): WorkflowTables {
  const rows = workflowRows(db);
  return { db, rows, keys: concurrencyKeys(db, rows) };
}
