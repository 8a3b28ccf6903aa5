import type { AnalyticsEvent, LogRecord } from '../../contracts/index.ts';
import type { LogLevel } from '../../kit/logger.ts';

/** A log record with the run it belongs to, which stands in `meta.runId`. */
export interface KeptLog extends LogRecord {
  runId?: string;
}

/** An event on its way into the store. */
export interface KeptEvent {
  event: Omit<AnalyticsEvent, 'ts' | 'ingestTs' | 'schema'>;
  /** Epoch ms. */
  ts: number;
  ingestTs: number;
  tenantId: string | null;
  /** How many occurrences an aggregated event stands for. */
  occurrences: number;
  /** False: counted in the totals, but not kept itself. */
  keep: boolean;
}

/** Bounds of time in epoch ms: `from` included, `to` excluded. */
export interface TimeRange {
  from?: number;
  to?: number;
}

export interface LogFilter extends TimeRange {
  /** This level and those above it. */
  level?: LogLevel;
  services?: readonly string[];
  requestId?: string;
  traceId?: string;
  /** Undefined: of all tenants and of none. */
  tenantId?: string;
  pluginId?: string;
  runId?: string;
  search?: string;
}

export interface EventFilter extends TimeRange {
  type?: string;
  source?: string;
  /** Undefined: of all tenants and of none. */
  tenantId?: string;
}

export interface Paging {
  limit: number;
  offset: number;
}

/** A kept record with its place in the order of arrival, by which a stream goes on. */
export interface Numbered<Kept> {
  id: number;
  record: Kept;
}
export type NumberedLog = Numbered<LogRecord>;
export type NumberedEvent = Numbered<AnalyticsEvent>;

export interface EventTotals {
  total: number;
  byType: Record<string, number>;
  bySource: Record<string, number>;
  byActor: Record<string, number>;
}

export interface EventDay {
  /** `2030-01-31`, UTC. */
  date: string;
  total: number;
  byType: Record<string, number>;
}

/** Lines of one minute, service and tenant that came beyond the rate that is kept. */
export interface DroppedLines {
  kind: 'logs' | 'events';
  service: string;
  /** Empty: the platform's own; null: not known. */
  tenantId: string | null;
  /** When its minute began; epoch ms. */
  minute: number;
  count: number;
}

/** How many records of a filter's services, tenant and time were not kept. */
export interface DroppedCounts extends Record<DroppedLines['kind'], number> {
  /** Lines of these services and minutes whose tenant is not known: the counts of a tenant lack them, those of all have them. */
  unattributed: number;
}

/** How many records came and how many were not kept, since the file was made. */
export type TelemetryCounts = Record<string, number>;

/** What is asked of kept telemetry. */
export interface TelemetryQueries {
  /** Newest first. `total` counts up to 10,000. */
  logs(
    filter: LogFilter,
    paging: Paging,
  ): Promise<{ items: LogRecord[]; total: number; dropped: DroppedCounts }>;
  /** Records that arrived after the one of that id, oldest first. */
  logsAfter(filter: LogFilter, after: number, limit: number): Promise<NumberedLog[]>;
  /** The latest `limit` records, oldest first, and the id after which to go on. */
  latestLogs(filter: LogFilter, limit: number): Promise<{ items: NumberedLog[]; after: number }>;
  /** Newest first. */
  events(filter: EventFilter, paging: Paging): Promise<{ items: AnalyticsEvent[]; total: number }>;
  /** Events that arrived after the one of that id, oldest first. */
  eventsAfter(filter: EventFilter, after: number, limit: number): Promise<NumberedEvent[]>;
  /** The latest `limit` events, oldest first, and the id after which to go on. */
  latestEvents(filter: EventFilter, limit: number): Promise<{ items: NumberedEvent[]; after: number }>;
  stats(filter: EventFilter): Promise<EventTotals>;
  daily(filter: EventFilter): Promise<EventDay[]>;
  counts(): Promise<TelemetryCounts>;
}

export interface TelemetryLimits {
  /** Older records go. Epoch ms. */
  logsBefore: number;
  eventsBefore: number;
  maxBytes: number;
}

/** Log records and analytics events: in SQLite the file `telemetry.db`. Losable: the last second may be gone after a crash. */
export interface TelemetryStore extends TelemetryQueries {
  /** Writes records, events and increments of the counts in one transaction. */
  append(batch: {
    logs: KeptLog[];
    events: KeptEvent[];
    counts: TelemetryCounts;
    dropped?: readonly DroppedLines[];
  }): Promise<void>;
  /** Deletes some of what is too old or too much; false when nothing was left to delete. */
  prune(limits: TelemetryLimits): Promise<boolean>;
  close(): Promise<void>;
}
