import type { Clock } from '../../kit/time/clock.ts';
import { minutes } from '../../kit/time/duration.ts';
import type { TelemetryQueries, TelemetryReader } from '../ports/telemetry.ts';
import { readTelemetryCounts } from '../sqlite/telemetry/counts.ts';
import { createWorkerCalls } from '../sqlite/worker-calls.ts';
import { opener } from './opener.ts';
import { startTelemetryThread } from './writer.ts';

const IDLE_MS = minutes(1);

/**
 * Runs queries of `telemetry.db` on a worker thread, because a search in millions of records would block the event
 * loop. Queries reject with STORE_ERROR if the file cannot be read.
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
    permissionUses: remote('permissionUses'),
    // The few rows are read without a thread, because every scrape of the metrics reads them.
    counts: () => readTelemetryCounts(dataDir),
    health: async () => null,
    close,
  };
}

/** Returns a reader that opens its store at the first query. If opening fails, the next query opens the store again. */
export function openedOnUse(open: () => Promise<TelemetryReader>): TelemetryReader {
  const store = opener(open);
  return {
    logs: async (...args) => (await store()).logs(...args),
    logsAfter: async (...args) => (await store()).logsAfter(...args),
    latestLogs: async (...args) => (await store()).latestLogs(...args),
    events: async (...args) => (await store()).events(...args),
    eventsAfter: async (...args) => (await store()).eventsAfter(...args),
    latestEvents: async (...args) => (await store()).latestEvents(...args),
    stats: async (...args) => (await store()).stats(...args),
    daily: async (...args) => (await store()).daily(...args),
    permissionUses: async (...args) => (await store()).permissionUses(...args),
    counts: async () => (await store()).counts(),
    health: async () => (await store()).health(),
    close: () => closeOpened(store.opened()),
  };
}

async function closeOpened(opened: Promise<{ close(): Promise<void> }> | undefined): Promise<void> {
  const store = await opened?.catch(() => undefined);
  await store?.close();
}
