import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { type Database, openDatabase } from '../../../src/store/sqlite/index.ts';
import { sqlitePauses } from '../../../src/store/sqlite/workflow/pauses.ts';
import { sqliteRunQueue } from '../../../src/store/sqlite/workflow/run-queue.ts';
import { WORKFLOW_MIGRATIONS } from '../../../src/store/sqlite/workflow/schema.ts';
import { workflowTables } from '../../../src/store/sqlite/workflow/tables.ts';
import { tempDir } from '../../support/daemon.ts';

test('claims read indexes without paused runs, and pauses of workflows read unfinished runs only', async () => {
  const file = join(await tempDir(), 'workflow.db');
  const db = await openDatabase({ file, migrations: WORKFLOW_MIGRATIONS });
  onTestFinished(() => db.close());
  const prepared: string[] = [];
  const prepare = ((source: string) => {
    prepared.push(source);
    return db.prepare(source);
  }) as Database['prepare'];
  const tables = { ...workflowTables(db), db: { ...db, prepare } };
  sqliteRunQueue(tables);
  sqlitePauses(tables);
  const ofRuns = prepared.filter(
    (source) => source.includes('pause_scope') && !/seq = :seq|values/.test(source),
  );
  expect(ofRuns).toHaveLength(8);
  for (const source of ofRuns) {
    const names = [...source.matchAll(/:(\w+)/g)].map(([, name]) => [name, null] as const);
    const plan = db.prepare<unknown[], { detail: string }>(`explain query plan ${source}`);
    const lines = names.length > 0 ? plan.all(Object.fromEntries(names)) : plan.all();
    const reads = lines.map(({ detail }) => detail).filter((line) => / run\b/.test(line));
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
