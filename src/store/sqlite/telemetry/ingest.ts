import type { AnalyticsEvent } from '../../../contracts/index.ts';
import { isRecord } from '../../../kit/data/is-record.ts';
import { EVENT_LINE } from '../../../kit/telemetry/analytics.ts';
import { LOG_LEVELS } from '../../../kit/telemetry/logger.ts';
import type { DroppedLines, KeptEvent, KeptLog, TelemetryCounts } from '../../ports/telemetry.ts';
import { minuteOf } from './dropped.ts';

const SEVERE_LINE = /^\{"level":"(?:warn|error|fatal)"/;

/** Token bucket of one service: refill rate and burst size. */
export interface IngestRates {
  perSecond: number;
  atOnce: number;
}

/** Rate guaranteed to a service, regardless of others. */
const SERVICE_RATE: IngestRates = { perSecond: 300, atOnce: 5000 };
/** Rate shared by all services beyond that: what one core can write at 58 us of CPU a record (measured). */
const SHARED_RATE: IngestRates = { perSecond: 15_000, atOnce: 30_000 };
/** Combinations of tenant and service that are counted separately in a batch. */
const MAX_DROPPED_KINDS = 1000;

export interface Ingest {
  /** Ingests whole lines of one service. */
  take(service: string, lines: string): void;
  /** Counts lines of a service that were dropped before they arrived. */
  lost(service: string, count: number): void;
  /** Returns everything ingested since the last call; undefined when empty. */
  batch(): Batch | undefined;
  /** Number of waiting records. */
  readonly waiting: number;
}

export interface Batch {
  logs: KeptLog[];
  events: KeptEvent[];
  counts: TelemetryCounts;
  dropped: DroppedLines[];
}

/**
 * Parses lines into records. Above its own rate and the shared one, a service's records are dropped before
 * parsing; warnings and errors have a separate budget, and excess events are only counted. Log files keep
 * every record.
 */
export function createIngest({
  now,
  rates = SERVICE_RATE,
  sharedRates = SHARED_RATE,
}: {
  now: () => number;
  rates?: IngestRates;
  sharedRates?: IngestRates;
}): Ingest {
  const takeShared = budget(now, sharedRates);
  let dropped = new Map<string, DroppedLines>();
  const budgets = new Map<string, () => boolean>();
  let logs: KeptLog[] = [];
  let events: KeptEvent[] = [];
  let counts: TelemetryCounts = {};

  function within(key: string): boolean {
    let take = budgets.get(key);
    if (!take) {
      take = budget(now, rates);
      budgets.set(key, take);
    }
    return take() || takeShared();
  }
  function drop(kind: DroppedLines['kind'], service: string, tenant: string | null, by = 1): void {
    const minute = minuteOf(now());
    const exact = JSON.stringify([kind, minute, service, tenant]);
    const tenantId = dropped.size < MAX_DROPPED_KINDS || dropped.has(exact) ? tenant : null;
    const key = tenantId === tenant ? exact : JSON.stringify([kind, minute, service, null]);
    const known = dropped.get(key);
    if (known) known.count += by;
    else dropped.set(key, { kind, minute, service, tenantId, count: by });
  }
  function count(name: string, by = 1): void {
    counts[name] = (counts[name] ?? 0) + by;
  }
  function takeLine(service: string, line: string): void {
    if (line.startsWith(EVENT_LINE)) {
      const event = parseEvent(line, now());
      if (event === undefined) {
        count('events.dropped');
        return;
      }
      event.keep = within(`event ${service}`);
      events.push(event);
      if (!event.keep) drop('events', service, event.tenantId ?? '');
      count(event.keep ? 'events.kept' : 'events.counted');
    } else if (within(`${SEVERE_LINE.test(line) ? 'severe' : 'plain'} ${service}`)) {
      logs.push(parseRecord(service, line, now()));
      count('logs.kept');
    } else {
      drop('logs', service, tenantOf(line));
      count('logs.dropped');
    }
  }
  return {
    take(service, lines) {
      for (let start = 0; start < lines.length; ) {
        const end = lines.indexOf('\n', start);
        const stop = end === -1 ? lines.length : end;
        if (stop > start) takeLine(service, lines.slice(start, stop));
        start = stop + 1;
      }
    },
    lost(service, by) {
      drop('logs', service, null, by);
      count('logs.dropped', by);
    },
    batch() {
      if (Object.keys(counts).length === 0) return undefined;
      const taken = { logs, events, counts, dropped: [...dropped.values()] };
      [logs, events, counts] = [[], [], {}];
      dropped = new Map();
      return taken;
    },
    get waiting() {
      return logs.length + events.length;
    },
  };
}

const TENANT = '"tenantId":"';

/** Reads the tenant without parsing the line: in a JSON string these quotes would be escaped. */
function tenantOf(line: string): string {
  const start = line.indexOf(TENANT);
  if (start === -1) return '';
  const from = start + TENANT.length;
  const end = line.indexOf('"', from);
  return end === -1 ? '' : line.slice(from, end);
}

function budget(now: () => number, { perSecond, atOnce }: IngestRates): () => boolean {
  let left = atOnce;
  let at = now();
  return () => {
    const time = now();
    left = Math.min(atOnce, left + (Math.max(0, time - at) / 1000) * perSecond);
    at = time;
    if (left < 1) return false;
    left--;
    return true;
  };
}

/** A line that is not JSON (output of native code) becomes the message of a record. */
function parseRecord(service: string, line: string, now: number): KeptLog {
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

function parseEvent(line: string, now: number): KeptEvent | undefined {
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
