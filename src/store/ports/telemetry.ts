import type { AnalyticsEvent, LogRecord } from '../../contracts/index.ts';
import type { LogLevel } from '../../kit/telemetry/logger.ts';

/** A log record with the id of its run, taken from `meta.runId`. */
export interface KeptLog extends LogRecord {
  runId?: string;
}

/** An event to be stored. */
export interface KeptEvent {
  event: Omit<AnalyticsEvent, 'ts' | 'ingestTs' | 'schema'>;
  /** Time of the event in epoch ms. */
  ts: number;
  ingestTs: number;
  tenantId: string | null;
  /** Number of occurrences that an aggregated event represents. */
  occurrences: number;
  /** When false, the event is counted in the totals but not stored. */
  keep: boolean;
}

/** Time range in epoch ms: `from` inclusive, `to` exclusive. */
export interface TimeRange {
  from?: number;
  to?: number;
}

export interface LogFilter extends TimeRange {
  /** Lowest level to return; higher levels are included. */
  level?: LogLevel;
  services?: readonly string[];
  requestId?: string;
  traceId?: string;
  /** When undefined, records of all tenants and records without a tenant match. */
  tenantId?: string;
  pluginId?: string;
  runId?: string;
  search?: string;
}

export interface EventFilter extends TimeRange {
  type?: string;
  source?: string;
  /** When undefined, events of all tenants and events without a tenant match. */
  tenantId?: string;
}

export interface Paging {
  limit: number;
  offset: number;
}

/** A stored record with its arrival number, which streams use as their cursor. */
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
  /** UTC day, such as `2030-01-31`. */
  date: string;
  total: number;
  byType: Record<string, number>;
}

/** Number of records that exceeded the ingest rate in one minute, for one service and tenant. */
export interface DroppedLines {
  kind: 'logs' | 'events';
  service: string;
  /** Empty for records of the platform itself; null when the tenant is unknown. */
  tenantId: string | null;
  /** Start of the counted minute, in epoch ms. */
  minute: number;
  count: number;
}

/** Number of dropped records that a filter's services, tenant and time range match. */
export interface DroppedCounts extends Record<DroppedLines['kind'], number> {
  /**
   * Dropped records of the filter's services and minutes whose tenant is unknown. The counts of a tenant exclude
   * them; the overall counts include them.
   */
  unattributed: number;
}

/** Numbers of received and dropped records since the file was created. */
export type TelemetryCounts = Record<string, number>;

/** Queries on stored telemetry. */
export interface TelemetryQueries {
  /** Returns matching log records, newest first. `total` stops counting at 10,000. */
  logs(
    filter: LogFilter,
    paging: Paging,
  ): Promise<{ items: LogRecord[]; total: number; dropped: DroppedCounts }>;
  /** Returns records after the given id in arrival order, oldest first. */
  logsAfter(filter: LogFilter, after: number, limit: number): Promise<NumberedLog[]>;
  /** Returns the latest `limit` records, oldest first, and the cursor to continue from. */
  latestLogs(filter: LogFilter, limit: number): Promise<{ items: NumberedLog[]; after: number }>;
  /** Returns matching events, newest first. */
  events(filter: EventFilter, paging: Paging): Promise<{ items: AnalyticsEvent[]; total: number }>;
  /** Returns events after the given id in arrival order, oldest first. */
  eventsAfter(filter: EventFilter, after: number, limit: number): Promise<NumberedEvent[]>;
  /** Returns the latest `limit` events, oldest first, and the cursor to continue from. */
  latestEvents(filter: EventFilter, limit: number): Promise<{ items: NumberedEvent[]; after: number }>;
  stats(filter: EventFilter): Promise<EventTotals>;
  daily(filter: EventFilter): Promise<EventDay[]>;
  counts(): Promise<TelemetryCounts>;
}

export interface TelemetryLimits {
  /** Log records older than this time (epoch ms) are deleted. */
  logsBefore: number;
  eventsBefore: number;
  maxBytes: number;
}

/**
 * Log records and analytics events: in SQLite, the file `telemetry.db`. A crash may lose the last second.
 */
export interface TelemetryStore extends TelemetryQueries {
  /** Writes records, events and counter increments in one transaction. */
  append(batch: {
    logs: KeptLog[];
    events: KeptEvent[];
    counts: TelemetryCounts;
    dropped?: readonly DroppedLines[];
  }): Promise<void>;
  /** Deletes one batch of expired or excess records; returns false when none was left. */
  prune(limits: TelemetryLimits): Promise<boolean>;
  close(): Promise<void>;
}
