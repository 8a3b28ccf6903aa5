import { expect, test } from 'vitest';
import { sqlitePauses } from '../../../src/store/sqlite/workflow/pauses.ts';
import { sqliteRunQueue } from '../../../src/store/sqlite/workflow/run-queue.ts';
import { WORKFLOW_MIGRATIONS } from '../../../src/store/sqlite/workflow/schema.ts';
import { workflowTables } from '../../../src/store/sqlite/workflow/tables.ts';
import { planOf, recorded } from './support/recorded.ts';

test('claims read indexes without paused runs, and pauses of workflows read unfinished runs only', async () => {
  const { db, prepared, recorder } = await recorded('workflow.db', WORKFLOW_MIGRATIONS);
  const tables = { ...workflowTables(db), db: recorder };
  sqliteRunQueue(tables);
  sqlitePauses(tables);
  const ofRuns = prepared.filter(
    (source) => source.includes('pause_scope') && !/seq = :seq|values/.test(source),
  );
  expect(ofRuns).toHaveLength(8);
  for (const source of ofRuns) {
    const reads = planOf(db, source).filter((line) => / run\b/.test(line));
    const indexes = reads.map((line) => line.match(/INDEX (\w+)/)?.[1] ?? line);
    expect([source, [...new Set(indexes)].join()]).toEqual([
      source,
      expect.stringMatching(
        source.includes('update') ? /^run_live$/ : /^(run_ready|run_wake|run_wake_tenant|run_blamed)$/,
      ),
    ]);
  }
  const indexes = db
    .prepare<[], string>(
      `select name from sqlite_schema where type = 'index' and sql like '%pause_scope is null%'`,
    )
    .pluck();
  expect(indexes.all().toSorted()).toEqual(['run_ready', 'run_wake', 'run_wake_tenant']);
});
