import { onTestFinished } from 'vitest';
import type { KeptEvent, KeptLog, TelemetryStore } from '../../src/store/ports/telemetry.ts';
import { sqliteTelemetryStore } from '../../src/store/sqlite/telemetry/store.ts';

/** The writing side of a folder's `telemetry.db`, closed when the test ends. */
export async function openTelemetry(dataDir: string): Promise<TelemetryStore> {
  const store = await sqliteTelemetryStore({ dataDir });
  onTestFinished(() => store.close());
  return store;
}

export const NOON = Date.UTC(2030, 0, 2, 12);

export function logRecord(fields: Partial<KeptLog> = {}): KeptLog {
  return {
    level: 'info',
    time: NOON,
    serviceId: 'gateway',
    logsSource: 'platform',
    layer: 'service',
    message: 'hello',
    ...fields,
  };
}

/** An event of tenant `acme`. */
export function keptEvent(
  ts: number,
  fields: Partial<KeptEvent> & { type?: string; product?: string; actor?: string; payload?: unknown } = {},
): KeptEvent {
  const {
    type = 'plugin.command.completed',
    product = 'svc',
    actor,
    payload = { durationMs: 1 },
    ...rest
  } = fields;
  return {
    event: {
      id: `e${ts}`,
      type,
      source: { product, version: '1' },
      runId: 'run1',
      ...(actor === undefined ? {} : { actor: { type: 'user', id: actor } }),
      payload,
    },
    service: 'rest',
    ts,
    ingestTs: ts + 5,
    tenantId: 'acme',
    occurrences: 1,
    keep: true,
    ...rest,
  };
}

export const append = (store: TelemetryStore, logs: KeptLog[], events: KeptEvent[] = []): Promise<void> =>
  store.append({ logs, events, counts: {} });
