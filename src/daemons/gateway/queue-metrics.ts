import { Counter, Gauge } from 'prom-client';
import { seriesBy } from '../../kit/telemetry/metric-series.ts';
import type { Metrics } from '../../kit/telemetry/metrics.ts';
import type { LeaseOutcome, QueueCountsOf } from '../../store/ports/index.ts';

/** `waiting` is the end of a lease whose item waits again. */
export type QueueEvent = 'put' | 'leased' | LeaseOutcome;
export type CountQueueEvent = (queue: string, event: QueueEvent, items: number) => void;

export function queueEventCounter(metrics: Metrics): CountQueueEvent {
  const counter = new Counter({
    name: 'svc_gateway_queue_events_total',
    help: 'Changes of queue items by the calls of programs',
    labelNames: ['service', 'queue', 'event'],
    registers: [metrics.registry],
  });
  const series = seriesBy((queue, event) => counter.labels({ service: 'gateway', queue, event }));
  return (queue, event, items) => series(queue, event).inc(items);
}

export interface QueueLoad {
  counts(): Promise<QueueCountsOf[]>;
  waits(): number;
  now(): number;
}

export function createQueueGauges({ registry, service }: Metrics, { counts, waits, now }: QueueLoad): void {
  const labelNames = ['service', 'namespace', 'queue'];
  let counting: Promise<QueueCountsOf[]> | undefined;
  /** The gauges of one scrape share a query. */
  const counted = (): Promise<QueueCountsOf[]> => {
    counting ??= counts().finally(() => {
      counting = undefined;
    });
    return counting;
  };
  new Gauge({
    name: 'svc_gateway_queue_items',
    help: 'Items in queues by status',
    labelNames: [...labelNames, 'status'],
    registers: [registry],
    async collect() {
      const all = await counted();
      this.reset();
      for (const { namespaceId: namespace, queue, waiting, leased, dead } of all)
        for (const [status, count] of Object.entries({ waiting, leased, dead }))
          this.set({ service, namespace, queue, status }, count);
    },
  });
  new Gauge({
    name: 'svc_gateway_queue_oldest_age_seconds',
    help: 'Age of the oldest waiting item',
    labelNames,
    registers: [registry],
    async collect() {
      const all = await counted();
      this.reset();
      for (const { namespaceId: namespace, queue, oldestReceivedAt } of all) {
        if (oldestReceivedAt === null) continue;
        this.set({ service, namespace, queue }, Math.max(0, now() - oldestReceivedAt) / 1000);
      }
    },
  });
  new Gauge({
    name: 'svc_gateway_queue_waiting_calls',
    help: 'Lease calls that wait for items',
    labelNames: ['service'],
    registers: [registry],
    collect() {
      this.set({ service }, waits());
    },
  });
}
