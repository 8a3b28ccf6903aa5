import { Counter, Gauge, Histogram } from 'prom-client';
import type { Metrics } from '../../kit/telemetry/metrics.ts';
import type { TelemetryHealth, TelemetryReader } from '../../store/ports/telemetry.ts';

const LABELS = ['service', 'domain', 'operation', 'outcome'] as const;
const DURATION_MS = [1, 2.5, 5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10_000, 30_000, 60_000];

/** Measures an operation of a domain (`workflows`, `plugins`, …) and counts its outcome. Rethrows errors. */
export type Observe = <Result>(
  domain: string,
  operation: string,
  run: () => Promise<Result>,
  /** Returns whether a result counts as a failure. By default, every result is a success. */
  failed?: (result: Result) => boolean,
) => Promise<Result>;

/** Creates the metrics of operations by domain and name. @spec Metrics: svc_rest_domain_operation_* */
export function createOperationMetrics({ registry }: Metrics): Observe {
  const registers = [registry];
  const total = new Counter({
    name: 'svc_rest_domain_operation_total',
    help: 'Operations of the REST API, by domain, operation and outcome',
    labelNames: LABELS,
    registers,
  });
  const duration = new Histogram({
    name: 'svc_rest_domain_operation_duration_ms',
    help: 'How long operations of the REST API took, in milliseconds',
    labelNames: LABELS,
    buckets: DURATION_MS,
    registers,
  });
  return async (domain, operation, run, failed = () => false) => {
    const startedAt = performance.now();
    const count = (outcome: 'succeeded' | 'failed'): void => {
      const labels = { service: 'rest', domain, operation, outcome };
      total.inc(labels);
      duration.observe(labels, performance.now() - startedAt);
    };
    try {
      const result = await run();
      count(failed(result) ? 'failed' : 'succeeded');
      return result;
    } catch (error) {
      count('failed');
      throw error;
    }
  };
}

/** Adds metrics of the telemetry store. The supervisor writes to the store and has no metrics endpoint. */
export function createTelemetryMetrics({ registry }: Metrics, telemetry: TelemetryReader): void {
  const registers = [registry];
  new Counter({
    name: 'svc_telemetry_records_total',
    help: 'Log records and analytics events by outcome: kept, counted without being kept, or dropped',
    labelNames: ['service', 'kind', 'outcome'],
    registers,
    async collect() {
      this.reset();
      for (const kind of ['logs', 'events']) this.inc({ service: 'rest', kind, outcome: 'kept' }, 0);
      // An unreadable store must not fail the scrape.
      const counts = await telemetry.counts().catch(() => ({}));
      for (const [name, value] of Object.entries(counts)) {
        const [kind = '', outcome = ''] = name.split('.');
        this.inc({ service: 'rest', kind, outcome }, value);
      }
    },
  });
  createTelemetryHealthMetrics(registers, telemetry);
}

/** Adds gauges that have a value only with PostgreSQL. */
function createTelemetryHealthMetrics(registers: Metrics['registry'][], telemetry: TelemetryReader): void {
  const gauge = (name: string, help: string, read: (health: TelemetryHealth) => number) =>
    new Gauge({
      ...{ name, help, labelNames: ['service'], registers },
      async collect() {
        this.reset();
        const health = await telemetry.health().catch(() => null);
        if (health) this.set({ service: 'rest' }, read(health));
      },
    });
  gauge('svc_telemetry_partitions', 'Partitions of telemetry, two per day', ({ partitions }) => partitions);
  gauge(
    'svc_telemetry_dead_rows',
    'Deleted or replaced rows of telemetry that PostgreSQL has not removed yet',
    ({ deadRows }) => deadRows,
  );
}
