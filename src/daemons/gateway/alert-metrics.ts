import { Counter, Gauge } from 'prom-client';
import { seriesBy } from '../../kit/telemetry/metric-series.ts';
import type { Metrics } from '../../kit/telemetry/metrics.ts';
import type { AlertStore } from '../../store/ports/index.ts';
import type { Attempted } from './domain/alerts/channel-calls.ts';
import type { Channel } from './domain/alerts/rule-book.ts';

export interface AlertGaugesDeps {
  store: Pick<AlertStore, 'firing' | 'pending'>;
  /** Whether this process reports the alerts of the store. The metrics of processes are added up. */
  isReporter: boolean;
  now(): number;
}

export function createAlertGauges(
  { registry, service }: Metrics,
  { store, isReporter, now }: AlertGaugesDeps,
): void {
  new Gauge({
    name: 'svc_alerts_firing',
    help: 'Firing alerts by kind',
    labelNames: ['service', 'kind'],
    registers: [registry],
    async collect() {
      this.reset();
      if (!isReporter) return;
      for (const { kind, alerts } of await store.firing()) this.inc({ service, kind }, alerts);
    },
  });
  const labelNames = ['service', 'namespace', 'channel'];
  new Gauge({
    name: 'svc_alerts_pending_notifications',
    help: 'Notifications that wait to be sent, by channel',
    labelNames,
    registers: [registry],
    async collect() {
      this.reset();
      if (!isReporter) return;
      for (const { namespaceId: namespace, channel, pending } of await store.pending())
        this.set({ service, namespace, channel }, pending);
    },
  });
  new Gauge({
    name: 'svc_alerts_oldest_pending_seconds',
    help: 'Age of the oldest notification that waits to be sent, by channel',
    labelNames,
    registers: [registry],
    async collect() {
      this.reset();
      if (!isReporter) return;
      for (const { namespaceId: namespace, channel, oldestAt } of await store.pending())
        this.set({ service, namespace, channel }, Math.max(0, now() - oldestAt) / 1000);
    },
  });
}

/** Counts attempts to send notifications. */
export function alertAttemptCounter({
  registry,
  service,
}: Metrics): (channel: Channel, attempt: Attempted) => void {
  const counter = new Counter({
    name: 'svc_alerts_attempts_total',
    help: 'Attempts to send notifications, by type of channel and result',
    labelNames: ['service', 'type', 'result'],
    registers: [registry],
  });
  const series = seriesBy((type, result) => counter.labels({ service, type, result }));
  return ({ settings }, { ok }) => series(settings.type, ok ? 'sent' : 'failed').inc();
}
