import { Counter, Gauge, Histogram } from 'prom-client';
import { seriesBy } from '../../kit/telemetry/metric-series.ts';
import type { Metrics } from '../../kit/telemetry/metrics.ts';

const DURATION_MS = [1, 2.5, 5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10_000, 30_000, 60_000];

/** Load of a pool of plugin processes. */
export interface PoolLoad {
  pluginId: string;
  processes: number;
  running: number;
  queued: number;
}

/** Counts one handler execution. The number of label values is bounded, because labels come from loaded plugins. */
export type ObserveExecution = (plugin: string, host: string, exitCode: number, durationMs: number) => void;

export function createExecutionMetrics({ registry, service }: Metrics): ObserveExecution {
  const registers = [registry];
  const total = new Counter({
    name: 'svc_plugin_executions_total',
    help: 'Handler executions that ended, by plugin, host and outcome',
    labelNames: ['service', 'plugin', 'host', 'outcome'],
    registers,
  });
  const duration = new Histogram({
    name: 'svc_plugin_execution_duration_ms',
    help: 'Time from the call of a handler to its result, waiting for a process included, in milliseconds',
    labelNames: ['service', 'plugin', 'host'],
    buckets: DURATION_MS,
    registers,
  });
  const series = seriesBy((plugin, host, outcome) => ({
    total: total.labels({ service, plugin, host, outcome }),
    duration: duration.labels({ service, plugin, host }),
  }));
  return (plugin, host, exitCode, durationMs) => {
    const found = series(plugin, host, exitCode === 0 ? 'succeeded' : 'failed');
    found.total.inc();
    found.duration.observe(durationMs);
  };
}

/** Creates the gauges of process pools. `load` is called at each scrape. */
export function createPoolMetrics({ registry, service }: Metrics, load: () => readonly PoolLoad[]): void {
  const gauges: Array<[name: string, help: string, value: (pool: PoolLoad) => number]> = [
    ['svc_plugin_processes', 'Processes of plugins that run now', ({ processes }) => processes],
    ['svc_plugin_calls_running', 'Handler calls that plugin processes work on now', ({ running }) => running],
    ['svc_plugin_calls_queued', 'Handler calls that wait for a process', ({ queued }) => queued],
  ];
  for (const [name, help, value] of gauges) {
    new Gauge({
      name,
      help,
      labelNames: ['service', 'plugin'],
      registers: [registry],
      collect() {
        this.reset();
        // A plugin has one process pool per permission set.
        for (const pool of load()) this.inc({ service, plugin: pool.pluginId }, value(pool));
      },
    });
  }
}
