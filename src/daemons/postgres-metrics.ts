import { Gauge } from 'prom-client';
import type { Metrics } from '../kit/telemetry/metrics.ts';
import type { DatabaseHealth, StoreMonitor, TableHealth } from '../store/ports/index.ts';

/** Labels and value of one series. */
type Sample = [labels: Record<string, string>, value: number | null];

/** Reports the connections of this process. Does nothing for SQLite. */
export function createPoolMetrics({ registry, service }: Metrics, monitor: StoreMonitor | undefined): void {
  if (!monitor) return;
  const gauge = (name: string, help: string, read: () => Sample[]) =>
    new Gauge({
      ...{ name, help, labelNames: ['service', 'pool', 'state'], registers: [registry] },
      collect() {
        for (const [labels, value] of read()) this.set({ service, ...labels }, value ?? 0);
      },
    });
  gauge('svc_postgres_pool_connections', 'Connections of this process in use, and callers that wait', () =>
    monitor.pools().flatMap(({ pool, inUse, waiting }): Sample[] => [
      [{ pool, state: 'in_use' }, inUse],
      [{ pool, state: 'waiting' }, waiting],
    ]),
  );
  gauge('svc_postgres_pool_limit', 'Maximum number of connections of this process', () =>
    monitor.pools().map(({ pool, limit }): Sample => [{ pool }, limit]),
  );
}

/** Reports the state of the database, which is the same on every node. Does nothing for SQLite. */
export function createDatabaseMetrics(metrics: Metrics, monitor: StoreMonitor | undefined): void {
  if (!monitor) return;
  const { registry, service } = metrics;
  const gauge = (name: string, help: string, labels: string[], read: (health: DatabaseHealth) => Sample[]) =>
    new Gauge({
      ...{ name, help, labelNames: ['service', ...labels], aggregator: 'max', registers: [registry] },
      async collect() {
        this.reset();
        // An unreachable database must not fail the scrape.
        const health = await monitor.health().catch(() => null);
        if (!health) return;
        for (const [given, value] of read(health)) if (value !== null) this.set({ service, ...given }, value);
      },
    });
  const byTable = (name: string, help: string, read: (table: TableHealth) => number | null) =>
    gauge(name, help, ['table'], ({ tables }) =>
      tables.map((row): Sample => [{ table: row.table }, read(row)]),
    );
  byTable('svc_postgres_live_rows', 'Rows of a queue table, estimated', ({ liveRows }) => liveRows);
  byTable('svc_postgres_dead_rows', 'Rows of a queue table to be vacuumed', ({ deadRows }) => deadRows);
  byTable('svc_postgres_table_bytes', 'Size of a queue table without its indexes', ({ bytes }) => bytes);
  byTable('svc_postgres_index_bytes', 'Size of the indexes of a queue table', ({ indexBytes }) => indexBytes);
  byTable(
    'svc_postgres_vacuum_age_seconds',
    'Time since the last vacuum of a queue table',
    ({ vacuumAgeSeconds }) => vacuumAgeSeconds,
  );
  gauge(
    'svc_postgres_oldest_transaction_seconds',
    'Age of the oldest transaction, which keeps dead rows from being removed',
    [],
    ({ oldestTransactionSeconds }) => [[{}, oldestTransactionSeconds]],
  );
  gauge(
    'svc_postgres_idle_in_transaction_seconds',
    'Longest time that a session has been idle in a transaction',
    [],
    ({ idleInTransaction }) => [[{}, idleInTransaction?.seconds ?? 0]],
  );
  gauge('svc_postgres_connections', 'Client connections of the server', [], ({ connections }) => [
    [{}, connections.used],
  ]);
  gauge('svc_postgres_connections_limit', 'Client connections that the server allows', [], (health) => [
    [{}, health.connections.limit],
  ]);
  gauge(
    'svc_postgres_feed_lag_seconds',
    'Age of the oldest change that a gateway has not read',
    ['node'],
    ({ feedLag }) => feedLag.map(({ member, seconds }): Sample => [{ node: member }, seconds]),
  );
  gauge(
    'svc_postgres_standby_lag_bytes',
    'Write-ahead log that a standby has not replayed',
    ['standby', 'sync'],
    ({ standbys }) => standbys.map(({ standby, sync, lagBytes }): Sample => [{ standby, sync }, lagBytes]),
  );
}
