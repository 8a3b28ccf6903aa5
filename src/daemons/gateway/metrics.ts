import { Counter, Gauge } from 'prom-client';
import { seriesBy } from '../../kit/telemetry/metric-series.ts';
import type { Metrics } from '../../kit/telemetry/metrics.ts';

/** Counts a request to an upstream. `status` is the response status, or `error` if the upstream sent no response. */
export type CountUpstreamRequest = (upstream: string, status: number | 'error') => void;

/** Creates a function that counts requests to upstreams. @spec Metrics: svc_gateway_upstream_requests_total */
export function upstreamRequestCounter(metrics: Metrics): CountUpstreamRequest {
  const counter = new Counter({
    name: 'svc_gateway_upstream_requests_total',
    help: 'Requests that the gateway sent to upstream services',
    labelNames: ['service', 'upstream', 'status'],
    registers: [metrics.registry],
  });
  const series = seriesBy((upstream, status) => counter.labels({ service: 'gateway', upstream, status }));
  return (upstream, status) => series(upstream, String(status)).inc();
}

export type CountDelivery = (pluginId: string, event: string, status: string) => void;

/**
 * Creates a function that counts deliveries. Labels are the names of declared webhooks. Other names are counted as
 * `(unknown)`.
 */
export function deliveryCounter(metrics: Metrics): CountDelivery {
  const counter = new Counter({
    name: 'svc_gateway_webhook_deliveries_total',
    help: 'Webhook deliveries by outcome',
    labelNames: ['service', 'plugin', 'event', 'status'],
    registers: [metrics.registry],
  });
  const series = seriesBy((plugin, event, status) =>
    counter.labels({ service: 'gateway', plugin, event, status }),
  );
  return (...labels) => series(...labels).inc();
}

/**
 * Creates a function that counts webhook requests for which no record was stored. Such requests ran no handler and
 * exceeded the limit of records per minute.
 */
export function unrecordedCounter(metrics: Metrics): CountDelivery {
  const counter = new Counter({
    name: 'svc_gateway_webhook_unrecorded_total',
    help: 'Webhook requests without a record: refused, challenge or duplicate ones above the per-minute record limit',
    labelNames: ['service', 'plugin', 'event', 'status'],
    registers: [metrics.registry],
  });
  const series = seriesBy((plugin, event, status) =>
    counter.labels({ service: 'gateway', plugin, event, status }),
  );
  return (...labels) => series(...labels).inc();
}

/** Functions that return the values of gauges. Called at each scrape. */
export interface GatewayLoad {
  deliveries: () => { waiting: number; running: number };
  inboxBytes: () => number;
  hosts: () => number;
}

export function createLoadMetrics(
  { registry, service }: Metrics,
  { deliveries, inboxBytes, hosts }: GatewayLoad,
): void {
  new Gauge({
    name: 'svc_gateway_webhook_async_deliveries',
    help: 'Async webhook deliveries waiting in memory or running; those waiting only in the store are not counted',
    labelNames: ['service', 'state'],
    registers: [registry],
    collect() {
      const { waiting, running } = deliveries();
      this.set({ service, state: 'waiting' }, waiting);
      this.set({ service, state: 'running' }, running);
    },
  });
  new Gauge({
    name: 'svc_gateway_inbox_waiting_bytes',
    help: 'Bytes of acknowledged deliveries that are not in svc.db yet; at most 256 MB, and soon 0 unless writes to svc.db fail',
    labelNames: ['service'],
    registers: [registry],
    collect() {
      this.set({ service }, inboxBytes());
    },
  });
  new Gauge({
    name: 'svc_gateway_connected_hosts',
    help: 'Hosts whose agent is connected',
    labelNames: ['service'],
    registers: [registry],
    collect() {
      this.set({ service }, hosts());
    },
  });
}
