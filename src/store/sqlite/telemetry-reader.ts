import type { Clock } from '../../kit/clock.ts';
import { minutes } from '../../kit/duration.ts';
import type { TelemetryQueries } from '../ports/telemetry.ts';
import { startTelemetryThread } from './telemetry-writer.ts';
import { createAskedThread } from './worker-calls.ts';

export interface TelemetryReader extends TelemetryQueries {
  close(): Promise<void>;
}

const IDLE_MS = minutes(1);

/**
 * Queries `telemetry.db` on a worker, so that a search through millions of records does not block the event
 * loop. Rejects with STORE_ERROR.
 */
export function createTelemetryReader({
  dataDir,
  clock,
}: {
  dataDir: string;
  clock: Clock;
}): TelemetryReader {
  const { ask, close } = createAskedThread({
    start: () => startTelemetryThread({ mode: 'read', dataDir }),
    clock,
    idleMs: IDLE_MS,
    name: 'telemetry reader',
  });
  const asked =
    (method: keyof TelemetryQueries) =>
    (...args: unknown[]) =>
      ask(method, args);
  return {
    logs: asked('logs'),
    logsAfter: asked('logsAfter'),
    latestLogs: asked('latestLogs'),
    events: asked('events'),
    eventsAfter: asked('eventsAfter'),
    latestEvents: asked('latestEvents'),
    stats: asked('stats'),
    daily: asked('daily'),
    counts: asked('counts'),
    close,
  };
}
