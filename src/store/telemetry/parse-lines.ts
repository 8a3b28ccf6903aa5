import type { AnalyticsEvent } from '../../contracts/index.ts';
import { isRecord } from '../../kit/data/is-record.ts';
import { LOG_LEVELS } from '../../kit/telemetry/logger.ts';
import type { KeptEvent, KeptLog } from '../ports/telemetry.ts';

const TENANT = '"tenantId":"';

/**
 * Returns the tenant id of a log line without parsing the line. The search text contains quotes, so the search never
 * matches inside a string value, where quotes are escaped.
 */
export function tenantOf(line: string): string {
  const start = line.indexOf(TENANT);
  if (start === -1) return '';
  const from = start + TENANT.length;
  const end = line.indexOf('"', from);
  return end === -1 ? '' : line.slice(from, end);
}

/** Parses a log line. A line that is not JSON, such as output of native code, becomes the message of a record. */
export function parseRecord(service: string, line: string, now: number): KeptLog {
  const record = parse(line);
  if (record === undefined || typeof record.message !== 'string') {
    return {
      level: 'info',
      time: now,
      serviceId: service,
      logsSource: 'platform',
      layer: 'process',
      message: line,
    };
  }
  const { level, time, serviceId, logsSource, layer, meta, ...rest } = record;
  const runId = (meta as { runId?: unknown } | undefined)?.runId;
  return {
    ...textFields(rest),
    level: LOG_LEVELS.find((known) => known === level) ?? 'info',
    time: typeof time === 'number' && Number.isFinite(time) ? Math.round(time) : now,
    serviceId: typeof serviceId === 'string' ? serviceId : service,
    logsSource: typeof logsSource === 'string' ? logsSource : 'platform',
    layer: typeof layer === 'string' ? layer : 'service',
    message: record.message,
    ...(isRecord(meta) ? { meta } : {}),
    ...(typeof runId === 'string' ? { runId } : {}),
    ...(rest.error === undefined ? {} : { error: rest.error }),
    ...(isRecord(rest.evidence) ? { evidence: rest.evidence } : {}),
  };
}

const TEXT_FIELDS = [
  'requestId',
  'traceId',
  'spanId',
  'tenantId',
  'pluginId',
  'domain',
  'event',
  'reasonCode',
  'outcome',
] as const;

function textFields(record: Record<string, unknown>): Partial<Record<(typeof TEXT_FIELDS)[number], string>> {
  return Object.fromEntries(
    TEXT_FIELDS.filter((name) => typeof record[name] === 'string').map((name) => [name, record[name]]),
  );
}

export function parseEvent(service: string, line: string, now: number): KeptEvent | undefined {
  const event = parse(line) as Partial<AnalyticsEvent> | undefined;
  if (event === undefined || typeof event.type !== 'string' || typeof event.ts !== 'string') return undefined;
  const ts = Date.parse(event.ts);
  if (!Number.isFinite(ts)) return undefined;
  const { id, type, source, runId, actor, ctx, payload } = event;
  const tenantId = ctx?.tenantId;
  const count = ctx?.count;
  return {
    event: {
      id: String(id),
      type,
      source: { product: String(source?.product ?? ''), version: String(source?.version ?? '') },
      runId: String(runId ?? ''),
      ...(actor === undefined ? {} : { actor }),
      ...(ctx === undefined ? {} : { ctx }),
      ...(payload === undefined ? {} : { payload }),
    },
    service,
    ts,
    ingestTs: now,
    tenantId: typeof tenantId === 'string' ? tenantId : null,
    occurrences: typeof count === 'number' && Number.isSafeInteger(count) && count > 0 ? count : 1,
    keep: true,
  };
}

function parse(line: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(line);
    return isRecord(value) ? value : undefined;
  } catch {
    return undefined;
  }
}
