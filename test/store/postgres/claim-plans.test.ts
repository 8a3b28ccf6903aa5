import { describe, expect, test } from 'vitest';
import { silentLogger } from '../../../src/kit/telemetry/logger.ts';
import { PostgresDatabase } from '../../../src/store/postgres/database.ts';
import { migratePostgres } from '../../../src/store/postgres/migrate.ts';
import type { Sql } from '../../../src/store/postgres/named-sql.ts';
import { postgresRunQueue } from '../../../src/store/postgres/workflow/run-queue.ts';
import { PostgresSharedRuns } from '../../../src/store/postgres/workflow/shared-runs.ts';
import { postgresWorkflowStore } from '../../../src/store/postgres/workflow/store.ts';
import { atEnd } from '../../support/at-end.ts';
import { emptyPostgres, POSTGRES_MISSING, POSTGRES_PROGRAMS } from '../../support/postgres.ts';
import { started } from '../suites/workflow.ts';

const suspects = { crashes: 3, killsPerCrash: 10 };
const now = 10_000;

describe.skipIf(!POSTGRES_PROGRAMS)(POSTGRES_PROGRAMS ? 'claims' : POSTGRES_MISSING, () => {
  test('read indexes without paused runs', async () => {
    const database = new PostgresDatabase({
      ...{ url: await emptyPostgres(), logger: silentLogger, applicationName: 'svc-test' },
    });
    atEnd(() => database.close());
    await migratePostgres(database);
    await started(postgresWorkflowStore(database), { tenantId: 'other' });
    await database.pool.query(SEED);
    await database.pool.query('analyze svc.run');
    const plans: string[] = [];
    const explained = (sql: Sql): Sql => {
      return async (text, values, prepareAs) => {
        const rows = await sql<{ 'QUERY PLAN': string }>(`explain ${text}`, values);
        plans.push(rows.map((row) => row['QUERY PLAN']).join('\n'));
        return sql(text, values, prepareAs);
      };
    };
    const read: PostgresDatabase['read'] = (run) => database.read((sql) => run(explained(sql)));
    const explaining = { read } as PostgresDatabase;
    const queue = postgresRunQueue(explaining);
    const shared = new PostgresSharedRuns(explaining);
    const shares = ['paused', 'other'].map((tenantId) => ({ tenantId, limit: 5 }));
    expect(await queue.tenants()).toEqual(['other']);
    expect(await queue.ready('paused', 10, suspects)).toEqual([]);
    expect(await queue.due(now, 10, [], suspects)).toHaveLength(10);
    expect(await queue.due(now, 10, ['other'], suspects)).toEqual([]);
    expect(await queue.nextWake(0, { ...suspects, now })).toBe(2000);
    expect(await shared.tenants('due')).toEqual(['other']);
    expect(await shared.planned(now, 10)).toEqual([]);
    for (const which of ['ready', 'due'] as const)
      await shared.claim(1, which, { shares, limit: 5, now, suspects });
    expect(plans.length).toBeGreaterThan(8);
    for (const plan of plans) {
      expect(plan).toMatch(/ run_claim_(ready|planned|due|due_tenant) /);
      expect(plan).not.toMatch(/Seq Scan on run | run_(live|tenant|workflow) /);
    }
  });

  test('of earlier releases keep their indexes during a rolling upgrade', async () => {
    const database = new PostgresDatabase({
      ...{ url: await emptyPostgres(), logger: silentLogger, applicationName: 'svc-test' },
    });
    atEnd(() => database.close());
    await migratePostgres(database);
    const { rows } = await database.pool.query<{ indexname: string }>(
      `select indexname from pg_indexes where schemaname = 'svc' and tablename = 'run'`,
    );
    expect(rows.map(({ indexname }) => indexname)).toEqual(
      expect.arrayContaining(['run_ready', 'run_planned', 'run_wake', 'run_wake_tenant']),
    );
  });
});

/**
 * Copies the first run: 2,000 have ended, 6,000 wait and 6,000 are queued but paused, 20 are due. With fewer paused runs
 * the indexes of earlier releases cost as little.
 */
const SEED = `
  insert into svc.run overriding system value
  select (jsonb_populate_record(run, jsonb_build_object('seq', seq + n, 'id', 'run_' || n) || case
    when n <= 2000 then '{"tenant_id": "paused", "status": "succeeded", "ready": false, "finished_at": 1}'
    when n <= 8000 then '{"tenant_id": "paused", "status": "waiting", "ready": false, "wake_at": 1, "pause_scope": "run"}'
    when n <= 14000 then '{"tenant_id": "paused", "pause_scope": "run"}'
    else '{"status": "waiting", "ready": false, "wake_at": 2000}'::jsonb end)).*
  from svc.run, generate_series(1, 14020) as n`;
