import type { Clock } from '../../kit/time/clock.ts';
import { minutes } from '../../kit/time/duration.ts';
import type { TelemetryQueries } from '../ports/telemetry.ts';
import { createWorkerCalls } from '../sqlite/worker-calls.ts';
import { startTelemetryThread } from './writer.ts';

export interface TelemetryReader extends TelemetryQueries {
  close(): Promise<void>;
}

const IDLE_MS = minutes(1);

/**
 * Runs queries on a worker thread, because a search in millions of records would block the event loop. Queries reject
 * with STORE_ERROR.
 */
export function createTelemetryReader({
  dataDir,
  clock,
}: {
  dataDir: string;
  clock: Clock;
}): TelemetryReader {
  const { call, close } = createWorkerCalls({
    start: () => startTelemetryThread({ mode: 'read', dataDir }),
    clock,
    idleMs: IDLE_MS,
    name: 'telemetry reader',
  });
  const remote =
    (method: keyof TelemetryQueries) =>
    (...args: unknown[]) =>
      call(method, args);
  return {
    logs: remote('logs'),
    logsAfter: remote('logsAfter'),
    latestLogs: remote('latestLogs'),
    events: remote('events'),
    eventsAfter: remote('eventsAfter'),
    latestEvents: remote('latestEvents'),
    stats: remote('stats'),
    daily: remote('daily'),
    counts: remote('counts'),
    close,
  };
}
