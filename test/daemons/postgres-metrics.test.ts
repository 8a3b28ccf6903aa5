import { execFileSync, spawnSync } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import pg from 'pg';
import { describe, expect, test } from 'vitest';
import { healthFacts } from '../../src/cli/commands/doctor/postgres.ts';
import { gateway } from '../../src/daemons/gateway/index.ts';
import { POLL_MS } from '../../src/daemons/membership/change-feed.ts';
import { createPeers } from '../../src/daemons/peers.ts';
import { state } from '../../src/daemons/state/index.ts';
import { packageRoot } from '../../src/kit/files/paths.ts';
import { silentLogger } from '../../src/kit/telemetry/logger.ts';
import type { DatabaseHealth } from '../../src/store/ports/index.ts';
import { databaseHealth, PostgresDatabase } from '../../src/store/postgres/index.ts';
import { atEnd } from '../support/at-end.ts';
import { startTestDaemon, tempDir } from '../support/daemon.ts';
import { migratedPostgres } from '../support/migrated-postgres.ts';
import { POSTGRES_MISSING, POSTGRES_PROGRAMS } from '../support/postgres.ts';

const RULES = join(packageRoot, 'config/prometheus-rules.yml');
const hasPromtool = spawnSync('promtool', ['--version']).status === 0;

async function connect(url: string): Promise<pg.Client> {
  const client = new pg.Client(url);
  await client.connect();
  atEnd(() => client.end());
  return client;
}

async function readHealth(url: string): Promise<DatabaseHealth> {
  const database = new PostgresDatabase({ url, logger: silentLogger, applicationName: 'svc-test' });
  try {
    return await databaseHealth(database);
  } finally {
    await database.close();
  }
}

describe.skipIf(!POSTGRES_PROGRAMS)(POSTGRES_PROGRAMS ? 'the state of PostgreSQL' : POSTGRES_MISSING, () => {
  test('is in the metrics of gateways, and each service reports its connections', {
    timeout: 60_000,
  }, async () => {
    const url = await migratedPostgres();
    const config = { store: { url } };
    const kept = await startTestDaemon(state, { config });
    const front = await startTestDaemon(gateway, { config, peers: createPeers({ state: kept.url }) });
    const feedLag = async () => {
      front.clock.advance(POLL_MS);
      return (await readHealth(url)).feedLag;
    };
    // The gateway reads the changes of its own start at its next poll.
    await expect.poll(feedLag).toEqual([{ member: expect.any(String), seconds: 0 }]);
    const other = await connect(url);
    await other.query('begin');
    await other.query('select pg_current_xact_id()');
    const text = await (await front.fetch('/metrics')).text();
    for (const name of [
      ...['live_rows', 'dead_rows', 'table_bytes', 'index_bytes'].map(
        (part) => `${part}{service="gateway",table="run"}`,
      ),
      ...[
        'oldest_transaction_seconds',
        'idle_in_transaction_seconds',
        'connections',
        'connections_limit',
      ].map((part) => `${part}{service="gateway"}`),
      'pool_limit{service="gateway",pool="main"}',
      'pool_connections{service="gateway",pool="leases",state="in_use"}',
    ])
      expect(text).toContain(`svc_postgres_${name} `);
    expect(text).toMatch(/svc_postgres_feed_lag_seconds\{service="gateway",node="[^"]+"\} 0$/m);
    expect(text).not.toMatch(/svc_postgres_oldest_transaction_seconds\{service="gateway"\} 0$/m);
    const own = await (await kept.fetch('/metrics')).text();
    expect(own).toContain('svc_postgres_pool_limit{service="state",pool="main"} 10');
    expect(own).not.toContain('svc_postgres_dead_rows{');
    if (!hasPromtool) return;
    const { stderr } = spawnSync('promtool', ['check', 'metrics'], { input: text, encoding: 'utf8' });
    expect(stderr.split('\n').filter((line) => line.includes('postgres'))).toEqual([]);
  });

  test('dead rows, idle sessions and a missing autovacuum are warnings of svc doctor', {
    timeout: 60_000,
  }, async () => {
    const url = await migratedPostgres();
    const client = await connect(url);
    await client.query(
      `insert into svc.cache_entry (scope, key, value) select 's', n, '1' from generate_series(1, 20000) n`,
    );
    await client.query('delete from svc.cache_entry');
    await client.query('alter table svc.run set (autovacuum_enabled = false)');
    // Statistics are complete once the session has been idle for a moment.
    const deadRows = async () =>
      (await readHealth(url)).tables.find(({ table }) => table === 'cache_entry')!.deadRows;
    await expect.poll(deadRows, { timeout: 30_000 }).toBe(20_000);
    await client.query('begin');
    await client.query('select from svc.run');
    const health = await readHealth(url);
    expect(health.idleInTransaction).toMatchObject({ application: '' });
    const { pid } = health.idleInTransaction!;
    const facts = healthFacts({
      ...health,
      idleInTransaction: { ...health.idleInTransaction!, seconds: 120 },
      oldestTransactionSeconds: 600,
      connections: { used: 90, limit: 97 },
      unusedSlots: ['lost'],
    });
    expect(facts.map(({ status, message, remedy }) => `${status}: ${message} ${remedy}`)).toEqual([
      expect.stringMatching(/^warn: autovacuum is off, so queue tables grow .* autovacuum = on /),
      'warn: autovacuum is off for svc.run. Run: alter table svc.run reset (autovacuum_enabled)',
      expect.stringMatching(/svc\.cache_entry has 20000 dead rows .* vacuum \(analyze\) svc\.cache_entry/),
      expect.stringMatching(
        new RegExp(`Session ${pid} .* idle in a transaction for 2m.*pg_terminate_backend\\(${pid}\\)`),
      ),
      expect.stringContaining('The oldest transaction has run for 10m'),
      expect.stringContaining('90 of 97 connections'),
      expect.stringContaining('replication slot lost'),
    ]);
  });

  test('sessions of the platform end when they are idle in a transaction, and statements end at the server first', async () => {
    const url = await migratedPostgres();
    const database = new PostgresDatabase({ url, logger: silentLogger, applicationName: 'svc-test' });
    atEnd(() => database.close());
    const setting = async (pool: PostgresDatabase, name: string) =>
      (await pool.sql<{ value: string }>('select current_setting($1) as value', [name])).rows[0]!.value;
    for (const each of [database, database.reserved, database.lists])
      for (const [name, value] of [
        ['idle_in_transaction_session_timeout', '10s'],
        ['statement_timeout', '24s'],
      ] as const)
        expect([name, await setting(each, name)]).toEqual([name, value]);
    expect(database.pools().map(({ pool, limit }) => [pool, limit])).toEqual([
      ['main', 10],
      ['leases', 2],
      ['lists', 3],
    ]);
  });
});

interface AlertTest {
  alert: string;
  series: Record<string, number>;
  /** Labels with which the alert fires, besides its severity. */
  labels: Record<string, string>;
  severity?: string;
}

const ALERTS: AlertTest[] = [
  {
    alert: 'SvcDeadRows',
    series: { 'svc_postgres_dead_rows{table="run"}': 50_000, 'svc_postgres_live_rows{table="run"}': 60_000 },
    labels: { table: 'run' },
  },
  { alert: 'SvcLongTransaction', series: { svc_postgres_oldest_transaction_seconds: 1000 }, labels: {} },
  {
    alert: 'SvcConnectionsLow',
    series: { svc_postgres_connections: 90, svc_postgres_connections_limit: 100 },
    labels: {},
  },
  {
    alert: 'SvcPoolWaiting',
    series: {
      'svc_postgres_pool_connections{instance="a",service="gateway",pool="main",state="waiting"}': 3,
    },
    labels: { instance: 'a', service: 'gateway', pool: 'main' },
  },
  {
    alert: 'SvcFeedLag',
    series: {
      'svc_postgres_feed_lag_seconds{instance="a",node="n"}': 20,
      'svc_postgres_feed_lag_seconds{instance="b",node="n"}': 21,
    },
    labels: { node: 'n' },
    severity: 'critical',
  },
  {
    alert: 'SvcStandbyLag',
    series: { 'svc_postgres_standby_lag_bytes{standby="s"}': 2e9 },
    labels: { standby: 's' },
  },
];

function seriesOf(labels: Record<string, string>): string {
  const all = Object.entries({ ...labels, alertstate: 'firing' });
  return `ALERTS{${all.map(([name, value]) => `${name}="${value}"`).join(',')}}`;
}

test.skipIf(!hasPromtool)('each alert fires once for all nodes, and not on a healthy database', async () => {
  execFileSync('promtool', ['check', 'rules', RULES]);
  const file = join(await tempDir(), 'tests.json');
  const tests = ALERTS.flatMap(({ alert, series, labels, severity = 'warning' }) =>
    [
      { factor: 1, fired: [{ labels: seriesOf({ alertname: alert, ...labels, severity }), value: 1 }] },
      { factor: 0, fired: [] },
    ].map(({ factor, fired }) => ({
      interval: '1m',
      input_series: Object.entries(series).map(([name, value]) => ({
        series: name,
        values: `${value * factor}+0x60`,
      })),
      promql_expr_test: [
        { expr: `ALERTS{alertname="${alert}",alertstate="firing"}`, eval_time: '45m', exp_samples: fired },
      ],
    })),
  );
  await writeFile(file, JSON.stringify({ rule_files: [RULES], evaluation_interval: '1m', tests }));
  const { stdout, stderr } = spawnSync('promtool', ['test', 'rules', file], { encoding: 'utf8' });
  expect(stdout + stderr).toContain('SUCCESS');
});
