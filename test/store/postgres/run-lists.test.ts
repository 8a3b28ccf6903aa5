import { describe, expect, test } from 'vitest';
import { silentLogger } from '../../../src/kit/telemetry/logger.ts';
import type { RunFilter } from '../../../src/store/ports/index.ts';
import { PostgresDatabase } from '../../../src/store/postgres/database.ts';
import { migratePostgres } from '../../../src/store/postgres/migrate.ts';
import type { Sql } from '../../../src/store/postgres/named-sql.ts';
import { listRuns } from '../../../src/store/postgres/workflow/run-lists.ts';
import { postgresWorkflowStore } from '../../../src/store/postgres/workflow/store.ts';
import { atEnd } from '../../support/at-end.ts';
import { emptyPostgres, POSTGRES_MISSING, POSTGRES_PROGRAMS } from '../../support/postgres.ts';
import { started } from '../suites/workflow.ts';

describe.skipIf(!POSTGRES_PROGRAMS)(POSTGRES_PROGRAMS ? 'lists of runs' : POSTGRES_MISSING, () => {
  test('lists of several statuses and of paused runs read only the small indexes of their runs', async () => {
    const database = new PostgresDatabase({
      ...{ url: await emptyPostgres(), logger: silentLogger, applicationName: 'svc-test' },
    });
    atEnd(() => database.close());
    await migratePostgres(database);
    await started(postgresWorkflowStore(database));
    await database.pool.query(SEED);
    await database.pool.query('analyze svc.run');
    const planOf = (conditions: Partial<RunFilter>): Promise<string> =>
      database.lists.read(async (sql) => {
        const plans: string[] = [];
        const explained: Sql = async (text, values, prepareAs) => {
          const rows = await sql<{ 'QUERY PLAN': string }>(`explain ${text}`, values);
          plans.push(...rows.map((row) => row['QUERY PLAN']));
          return sql(text, values, prepareAs);
        };
        const filter = { kind: 'workflow', ...conditions, limit: 50 } as const;
        const { runs } = await listRuns(explained, 'acme', filter);
        expect(runs).toHaveLength(50);
        return plans.join('\n');
      });
    const failed = await planOf({ status: ['failed', 'timed_out'] });
    expect(failed).toMatch(/ run_unsuccessful /);
    const both = await planOf({ status: ['failed', 'queued'] });
    expect(both).toMatch(/Append.* run_live .* run_unsuccessful /s);
    const paused = await planOf({ paused: true });
    expect(paused).toMatch(/ run_live /);
    for (const plan of [failed, both, paused]) expect(plan).not.toMatch(/Seq Scan| run_tenant /);
  });
});

/** Copies the first run: of 20 runs one has failed and one is queued and paused. */
const SEED = `
  insert into svc.run overriding system value
  select (jsonb_populate_record(run, jsonb_build_object('seq', seq + n, 'id', 'run_' || n, 'finished_at', n, 'status',
    case n % 20 when 0 then 'failed' when 1 then 'queued' else 'succeeded' end,
    'pause_scope', 'run'))).*
  from svc.run, generate_series(1, 20000) as n`;
