import { Counter, Gauge, Histogram } from 'prom-client';
import type { Metrics } from '../../kit/telemetry/metrics.ts';

export interface MessageLoad {
  /** Unfinished deliveries, at most 100,000. */
  waiting(): Promise<number>;
  /** Time of the oldest message that waits for its first attempt, in epoch ms. */
  oldest(): Promise<number | null>;
  inFlight(): number;
  now(): number;
}

/** Counts accepted messages and attempts. */
export function messageCounters({ registry, service }: Metrics) {
  const accepted = new Counter({
    name: 'svc_messages_accepted_total',
    help: 'Messages that were stored',
    labelNames: ['service'],
    registers: [registry],
  }).labels({ service });
  const attempts = new Histogram({
    name: 'svc_messages_attempt_duration_seconds',
    help: 'Duration of attempts to send a message, by outcome',
    labelNames: ['service', 'outcome'],
    buckets: [0.005, 0.02, 0.1, 0.5, 1, 5, 15, 60],
    registers: [registry],
  });
  const series = {
    succeeded: attempts.labels({ service, outcome: 'succeeded' }),
    failed: attempts.labels({ service, outcome: 'failed' }),
  };
  return {
    accepted: () => accepted.inc(),
    attempt: (outcome: 'succeeded' | 'failed', durationMs: number) =>
      series[outcome].observe(durationMs / 1000),
  };
}

export function createMessageGauges({ registry, service }: Metrics, load: MessageLoad): void {
  const options = { labelNames: ['service'], registers: [registry] };
  new Gauge({
    ...options,
    name: 'svc_messages_unfinished',
    help: 'Deliveries of messages that wait for an attempt; counted up to 100,000',
    async collect() {
      this.set({ service }, await load.waiting());
    },
  });
  new Gauge({
    ...options,
    name: 'svc_messages_oldest_age_seconds',
    help: 'Age of the oldest message that waits for its first attempt',
    async collect() {
      const oldest = await load.oldest();
      this.set({ service }, oldest === null ? 0 : Math.max(0, load.now() - oldest) / 1000);
    },
  });
  new Gauge({
    ...options,
    name: 'svc_messages_in_flight',
    help: 'Attempts in flight',
    collect() {
      this.set({ service }, load.inFlight());
    },
  });
}
