import { EVENT_LINE } from '../../kit/telemetry/analytics.ts';
import type {
  DroppedLines,
  KeptEvent,
  KeptLog,
  TelemetryBatch,
  TelemetryCounts,
} from '../ports/telemetry.ts';
import { minuteOf } from './dropped-counts.ts';
import { parseEvent, parseRecord, tenantOf } from './parse-lines.ts';

const SEVERE_LINE = /^\{"level":"(?:warn|error|fatal)"/;

/** Parameters of a token bucket: refill rate and maximum burst. */
export interface IngestRates {
  perSecond: number;
  atOnce: number;
}

/** Ingest rate that is reserved for each service. */
const SERVICE_RATE: IngestRates = { perSecond: 300, atOnce: 5000 };
/**
 * Ingest rate that all services share in addition to SERVICE_RATE. One core can write this many records, at a measured
 * 58 µs of CPU time per record.
 */
const SHARED_RATE: IngestRates = { perSecond: 15_000, atOnce: 30_000 };
/** Maximum number of combinations of tenant and service in a batch for which dropped records are counted separately. */
const MAX_DROPPED_KINDS = 1000;

export type Batch = Required<TelemetryBatch>;

interface Drop extends Pick<DroppedLines, 'kind' | 'service' | 'tenantId'> {
  by?: number;
  /** Time of the record in epoch ms, or undefined for the current time. */
  time?: number;
}

/**
 * Parses lines into records. Records above both the service's rate and the shared rate are dropped, but remain in the
 * log files. Warnings and errors have a separate budget. Events above the rate are only counted.
 */
export class Ingest {
  readonly #now: () => number;
  readonly #rates: IngestRates;
  readonly #takeShared: () => boolean;
  readonly #budgets = new Map<string, () => boolean>();
  #dropped = new Map<string, DroppedLines>();
  #logs: KeptLog[] = [];
  #events: KeptEvent[] = [];
  #counts: TelemetryCounts = {};

  constructor({
    now,
    rates = SERVICE_RATE,
    sharedRates = SHARED_RATE,
  }: {
    now: () => number;
    rates?: IngestRates;
    sharedRates?: IngestRates;
  }) {
    this.#now = now;
    this.#rates = rates;
    this.#takeShared = tokenBucket(now, sharedRates);
  }

  get waiting(): number {
    return this.#logs.length + this.#events.length;
  }

  /** Ingests complete lines of one service. */
  take(service: string, lines: string): void {
    for (let start = 0; start < lines.length; ) {
      const end = lines.indexOf('\n', start);
      const stop = end === -1 ? lines.length : end;
      if (stop > start) this.#takeLine(service, lines.slice(start, stop));
      start = stop + 1;
    }
  }

  /** Counts lines that were dropped before they reached this thread. */
  lost(service: string, by: number): void {
    this.#drop({ kind: 'logs', service, tenantId: null, by });
    this.#count('logs.dropped', by);
  }

  /** Counts the records of a batch that could not be stored. Returns the number that the next batch counts as dropped. */
  dropped({ logs, events, counts, dropped }: Batch): number {
    for (const { serviceId: service, tenantId = '', time } of logs)
      this.#drop({ kind: 'logs', service, tenantId, time });
    for (const { tenantId, ts: time, service } of events)
      this.#drop({ kind: 'events', service, tenantId: tenantId ?? '', time });
    for (const { count: by, minute: time, ...rest } of dropped) this.#drop({ ...rest, time, by });
    const droppedLogs = logs.length + (counts['logs.dropped'] ?? 0);
    this.#count('logs.dropped', droppedLogs);
    this.#count('events.dropped', events.length + (counts['events.dropped'] ?? 0));
    return droppedLogs;
  }

  /**
   * Returns all log records, events and counts since the last call. Returns undefined if nothing was ingested since the
   * last call.
   */
  batch(): Batch | undefined {
    if (Object.keys(this.#counts).length === 0) return undefined;
    const batch = {
      logs: this.#logs,
      events: this.#events,
      counts: this.#counts,
      dropped: [...this.#dropped.values()],
    };
    [this.#logs, this.#events, this.#counts] = [[], [], {}];
    this.#dropped = new Map();
    return batch;
  }

  #takeLine(service: string, line: string): void {
    if (line.startsWith(EVENT_LINE)) this.#takeEvent(service, line);
    else if (this.#isWithin(`${SEVERE_LINE.test(line) ? 'severe' : 'plain'} ${service}`)) {
      this.#logs.push(parseRecord(service, line, this.#now()));
      this.#count('logs.kept');
    } else {
      this.#drop({ kind: 'logs', service, tenantId: tenantOf(line) });
      this.#count('logs.dropped');
    }
  }

  #takeEvent(service: string, line: string): void {
    const event = parseEvent(service, line, this.#now());
    if (event === undefined) {
      this.#count('events.dropped');
      return;
    }
    event.keep = this.#isWithin(`event ${service}`);
    this.#events.push(event);
    if (!event.keep) this.#drop({ kind: 'events', service, tenantId: event.tenantId ?? '' });
    this.#count(event.keep ? 'events.kept' : 'events.counted');
  }

  #isWithin(key: string): boolean {
    let take = this.#budgets.get(key);
    if (!take) {
      take = tokenBucket(this.#now, this.#rates);
      this.#budgets.set(key, take);
    }
    return take() || this.#takeShared();
  }

  #drop({ kind, service, tenantId: tenant, by = 1, time = this.#now() }: Drop): void {
    const minute = minuteOf(time);
    const exact = JSON.stringify([kind, minute, service, tenant]);
    const tenantId = this.#dropped.size < MAX_DROPPED_KINDS || this.#dropped.has(exact) ? tenant : null;
    const key = tenantId === tenant ? exact : JSON.stringify([kind, minute, service, null]);
    const known = this.#dropped.get(key);
    if (known) known.count += by;
    else this.#dropped.set(key, { kind, minute, service, tenantId, count: by });
  }

  #count(name: string, by = 1): void {
    this.#counts[name] = (this.#counts[name] ?? 0) + by;
  }
}

function tokenBucket(now: () => number, { perSecond, atOnce }: IngestRates): () => boolean {
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
