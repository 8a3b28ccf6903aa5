import { Counter, Gauge } from 'prom-client';
import { seriesBy } from '../../kit/metric-series.ts';
import type { Metrics } from '../../kit/metrics.ts';

/** `status` is the upstream's, or `error` when there was none. */
export type CountUpstreamRequest = (upstream: string, status: number | 'error') => void;

/** @spec Metrics: svc_gateway_upstream_requests_total */
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

/** Labels are those of declared webhooks; `(unknown)` for all that strangers make up. */
export function deliveryCounter(metrics: Metrics): CountDelivery {
  const counter = new Counter({
    name: 'svc_gateway_webhook_deliveries_total',
    help: 'Webhook deliveries by how they ended',
    labelNames: ['service', 'plugin', 'event', 'status'],
    registers: [metrics.registry],
  });
  const series = seriesBy((plugin, event, status) =>
    counter.labels({ service: 'gateway', plugin, event, status }),
  );
  return (...labels) => series(...labels).inc();
}

/** Requests that no handler saw and that leave no record, as more came than are kept. */
export function unrecordedCounter(metrics: Metrics): CountDelivery {
  const counter = new Counter({
    name: 'svc_gateway_webhook_unrecorded_total',
    help: 'Webhook requests without a record: refused, challenge or duplicate ones beyond what is kept in a minute',
    labelNames: ['service', 'plugin', 'event', 'status'],
    registers: [metrics.registry],
  });
  const series = seriesBy((plugin, event, status) =>
    counter.labels({ service: 'gateway', plugin, event, status }),
  );
  return (...labels) => series(...labels).inc();
}

/** Asked at each scrape: what waits, what runs, and who is connected. */
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
    help: 'Async webhook deliveries that wait in memory or run now; what waits in the store alone is not in it',
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
    help: 'Deliveries that were acknowledged and are not in svc.db yet; 256 MB at most, and none for long unless svc.db takes nothing',
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
