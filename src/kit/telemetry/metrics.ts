import { monitorEventLoopDelay } from 'node:perf_hooks';
import {
  AggregatorRegistry,
  Counter,
  Gauge,
  Histogram,
  type MetricObjectWithValues,
  Registry,
} from 'prom-client';
import type { Clock } from '../time/clock.ts';
import { every, systemClock } from '../time/clock.ts';

const HTTP_LABELS = ['service', 'method', 'route', 'status'] as const;
const DURATION_BUCKETS_MS = [1, 2.5, 5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10_000, 30_000, 60_000];
const LAG_BUCKETS_SECONDS = [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5];
const LAG_SAMPLE_MS = 1000;

/**
 * Records one finished request. `route` is the pattern of the route, because raw paths would create too many label
 * values.
 */
export type ObserveRequest = (method: string, route: string, status: number, durationMs: number) => void;

export interface Metrics {
  /** Value of the `service` label of all metrics. */
  readonly service: string;
  readonly registry: Registry;
  observeRequest: ObserveRequest;
  /** Returns the text of `GET /metrics`. */
  render(): Promise<string>;
  /** Returns this process's metrics as serializable data. */
  snapshot(): Promise<MetricsSnapshot>;
  /** Replaces the implementation of `render`, for services with several processes. */
  renderBy(render: () => Promise<string>): void;
  close(): void;
}

export type MetricsSnapshot = Array<MetricObjectWithValues<{ value: number; labels: object }>>;

/** Merges the metrics of several processes, whose series differ in the label `process`. */
export function mergeMetrics(snapshots: readonly MetricsSnapshot[]): Promise<string> {
  return AggregatorRegistry.aggregate([...snapshots]).metrics();
}

/** Creates the metrics common to all services. @spec Metrics */
export function createMetrics(service: string, clock: Clock): Metrics {
  const registry = new Registry();
  const registers = [registry];
  const startedAt = clock.monotonic();

  new Gauge({
    name: 'svc_service_uptime_seconds',
    help: 'Seconds since the service started',
    labelNames: ['service'],
    aggregator: 'max',
    registers,
    collect() {
      this.set({ service }, (clock.monotonic() - startedAt) / 1000);
    },
  });
  new Gauge({
    name: 'svc_process_memory_rss_bytes',
    help: 'Resident memory of the process',
    labelNames: ['service'],
    registers,
    collect() {
      this.set({ service }, process.memoryUsage.rss());
    },
  });
  let cpuSeen = 0;
  new Counter({
    name: 'svc_process_cpu_seconds_total',
    help: 'CPU time of the process, user and system',
    labelNames: ['service'],
    registers,
    collect() {
      const { user, system } = process.cpuUsage();
      const total = (user + system) / 1e6;
      this.inc({ service }, total - cpuSeen);
      cpuSeen = total;
    },
  });
  let render = (): Promise<string> => registry.metrics();
  return {
    service,
    registry,
    observeRequest: requestObserver(service, registers),
    render: () => render(),
    snapshot: () => registry.getMetricsAsJSON() as Promise<MetricsSnapshot>,
    renderBy(other) {
      render = other;
    },
    close: watchEventLoop(service, registers),
  };
}

const OTHERS = '(others)';

/**
 * Returns a function that limits the values of a label. Keeps the first `maxValues` values and replaces all others by
 * `(others)`.
 */
export function boundedLabel(maxValues: number): (value: string) => string {
  const known = new Set<string>();
  return (value) => {
    if (known.has(value)) return value;
    if (known.size >= maxValues) return OTHERS;
    known.add(value);
    return value;
  };
}

function requestObserver(service: string, registers: Registry[]): ObserveRequest {
  const total = new Counter({
    name: 'svc_http_requests_total',
    help: 'HTTP requests answered',
    labelNames: HTTP_LABELS,
    registers,
  });
  const duration = new Histogram({
    name: 'svc_http_request_duration_ms',
    help: 'Time from the request line to the end of the answer, in milliseconds',
    labelNames: HTTP_LABELS,
    buckets: DURATION_BUCKETS_MS,
    registers,
  });
  type Series = { total: Counter.Internal; duration: Histogram.Internal<(typeof HTTP_LABELS)[number]> };
  const series = new Map<string, Series>();
  return (method, route, status, durationMs) => {
    // prom-client sorts and joins label names on every lookup. A map with string keys is faster.
    const key = `${method} ${status} ${route}`;
    let found = series.get(key);
    if (!found) {
      const labels = { service, method, route, status: String(status) };
      found = { total: total.labels(labels), duration: duration.labels(labels) };
      series.set(key, found);
    }
    found.total.inc();
    found.duration.observe(durationMs);
  };
}

/**
 * Samples the event loop delay with the system clock. A test clock that moves by days would cause thousands of samples
 * at once.
 */
function watchEventLoop(service: string, registers: Registry[]): () => void {
  const lag = new Histogram({
    name: 'svc_event_loop_lag_seconds',
    help: 'The longest delay of the event loop in each second',
    labelNames: ['service'],
    buckets: LAG_BUCKETS_SECONDS,
    registers,
  });
  lag.zero({ service });
  const monitor = monitorEventLoopDelay({ resolution: 20 });
  monitor.enable();
  const stop = every(systemClock, LAG_SAMPLE_MS, () => {
    // The monitor reports its own resolution (20 ms) as delay, so the resolution is subtracted.
    lag.observe({ service }, Math.max(0, monitor.max / 1e9 - 0.02));
    monitor.reset();
  });
  return () => {
    stop();
    monitor.disable();
  };
}
