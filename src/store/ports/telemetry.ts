import type { AnalyticsEvent, LogRecord } from '../../contracts/index.ts';
import type { LogLevel } from '../../kit/telemetry/logger.ts';

/** A log record to be stored. `meta.runId` contains the id of the workflow run. */
export interface KeptLog extends LogRecord {
  runId?: string;
}

/** An analytics event to be stored. Times are in epoch ms. */
export interface KeptEvent {
  event: Omit<AnalyticsEvent, 'ts' | 'ingestTs' | 'schema'>;
  /** Service that wrote the event. Used only to count dropped events. */
  service: string;
  ts: number;
  ingestTs: number;
  tenantId: string | null;
  /** Number of occurrences that an aggregated event represents. */
  occurrences: number;
  /** Whether the event itself is stored. The counts include the event in any case. */
  keep: boolean;
}

/** Time range in epoch ms. `from` is inclusive, `to` is exclusive. */
export interface TimeRange {
  from?: number;
  to?: number;
}

export interface LogFilter extends TimeRange {
  /** Minimum level of the returned records. */
  level?: LogLevel;
  services?: readonly string[];
  requestId?: string;
  traceId?: string;
  /** Tenant of the records. If undefined, records of all tenants match, including records without a tenant. */
  tenantId?: string;
  pluginId?: string;
  runId?: string;
  search?: string;
}

export interface EventFilter extends TimeRange {
  /** Trace of the events. Statistics do not support this filter. */
  traceId?: string;
  type?: string;
  source?: string;
  /** Tenant of the events. If undefined, events of all tenants match, including events without a tenant. */
  tenantId?: string;
}

/** Uses of permissions by a plugin. If `tenantId` is undefined, uses for all tenants match. */
export interface PermissionUseFilter {
  pluginId: string;
  tenantId?: string;
}

/** Newest use of a permission, in epoch ms. */
export interface PermissionUse {
  permission: string;
  usedAt: number;
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
  /** Day in UTC, such as `2030-01-31`. */
  date: string;
  total: number;
  byType: Record<string, number>;
}

/** Number of records of one service and tenant that exceeded the ingest rate in one minute and were dropped. */
export interface DroppedLines {
  kind: 'logs' | 'events';
  service: string;
  /** Id of the tenant: empty for records of the platform itself, null if the tenant is unknown. */
  tenantId: string | null;
  /** Start of the counted minute, in epoch ms. */
  minute: number;
  count: number;
}

/** Numbers of dropped log records and events that match the services, tenant and time range of a filter. */
export interface DroppedCounts extends Record<DroppedLines['kind'], number> {
  /**
   * Number of dropped records of unknown tenants. Counts of all tenants include this number, but counts of a single
   * tenant do not.
   */
  unattributed: number;
}

/** Numbers of stored and dropped records by counter name, since the store was created. */
export type TelemetryCounts = Record<string, number>;

export interface TelemetryQueries {
  /**
   * Returns matching log records, newest first. `total` counts at most 10,000 records, to limit the cost of the query.
   */
  logs(
    filter: LogFilter,
    paging: Paging,
  ): Promise<{ items: LogRecord[]; total: number; dropped: DroppedCounts }>;
  /** Returns the records that arrived after the record with the id `after`, oldest first. */
  logsAfter(filter: LogFilter, after: number, limit: number): Promise<NumberedLog[]>;
  /** Returns the latest `limit` records, oldest first. `after` is the cursor from which `logsAfter` continues. */
  latestLogs(filter: LogFilter, limit: number): Promise<{ items: NumberedLog[]; after: number }>;
  /** Returns matching events, newest first. */
  events(filter: EventFilter, paging: Paging): Promise<{ items: AnalyticsEvent[]; total: number }>;
  /** Returns the events that arrived after the event with the id `after`, oldest first. */
  eventsAfter(filter: EventFilter, after: number, limit: number): Promise<NumberedEvent[]>;
  /** Returns the latest `limit` events, oldest first. `after` is the cursor from which `eventsAfter` continues. */
  latestEvents(filter: EventFilter, limit: number): Promise<{ items: NumberedEvent[]; after: number }>;
  stats(filter: Omit<EventFilter, 'traceId'>): Promise<EventTotals>;
  daily(filter: Omit<EventFilter, 'traceId'>): Promise<EventDay[]>;
  /** Returns the newest use of each permission that a plugin used, by name. Expires with the events. */
  permissionUses(filter: PermissionUseFilter): Promise<PermissionUse[]>;
  counts(): Promise<TelemetryCounts>;
}

export interface TelemetryLimits {
  /** Time in epoch ms before which log records are deleted. PostgreSQL deletes whole days in UTC. */
  logsBefore: number;
  eventsBefore: number;
  maxBytes: number;
}

/** Records and counts that are stored together. */
export interface TelemetryBatch {
  logs: KeptLog[];
  events: KeptEvent[];
  counts: TelemetryCounts;
  dropped?: readonly DroppedLines[];
}

/** State of the tables in PostgreSQL. */
export interface TelemetryHealth {
  partitions: number;
  /** Number of deleted or replaced rows that PostgreSQL has not removed yet. */
  deadRows: number;
}

/** Queries of a service. They reject with STORE_ERROR while the store is away. */
export interface TelemetryReader extends TelemetryQueries {
  /** Returns null for SQLite. */
  health(): Promise<TelemetryHealth | null>;
  close(): Promise<void>;
}

/**
 * Store of log records and analytics events. With SQLite, the store is the file `telemetry.db`. With PostgreSQL, all
 * nodes share the store, which has one partition per day. A crash can lose the
 * records of the last second.
 */
export interface TelemetryStore extends TelemetryQueries {
  append(batch: TelemetryBatch): Promise<void>;
  /** Deletes a batch of expired or excess records. Returns false if no such records are left. */
  prune(limits: TelemetryLimits): Promise<boolean>;
  close(): Promise<void>;
}
