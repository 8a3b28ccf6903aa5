import type { LogRecord } from '../../contracts/index.ts';
import { LOG_LEVELS } from '../../kit/telemetry/logger.ts';
import type { KeptLog, NumberedLog } from '../ports/telemetry.ts';

/** A stored log record. `meta` and `extra` contain JSON. */
export interface LogRow {
  id: number;
  time: number;
  level: number;
  service: string;
  tenant_id: string | null;
  request_id: string | null;
  trace_id: string | null;
  span_id: string | null;
  plugin_id: string | null;
  run_id: string | null;
  source: string;
  layer: string;
  message: string;
  meta: string | null;
  extra: string | null;
}

/** Returns the columns of a log record. */
export function logRowOf(log: KeptLog): Omit<LogRow, 'id'> {
  const { level, time, serviceId, logsSource, layer, message, meta } = log;
  const { requestId, traceId, spanId, tenantId, pluginId, runId, ...rest } = log;
  const { domain, event, reasonCode, outcome, error, evidence } = rest;
  const extra = reasonCode === undefined ? null : { domain, event, reasonCode, outcome, error, evidence };
  return {
    time,
    level: LOG_LEVELS.indexOf(level),
    service: serviceId,
    tenant_id: tenantId ?? null,
    request_id: requestId ?? null,
    trace_id: traceId ?? null,
    span_id: spanId ?? null,
    plugin_id: pluginId ?? null,
    run_id: runId ?? null,
    source: logsSource,
    layer,
    message,
    meta: meta === undefined ? null : JSON.stringify(meta),
    extra: extra === null ? null : JSON.stringify(extra),
  };
}

/** Returns the log record of a row. */
export function logRecordOf(row: LogRow): LogRecord {
  const optional = {
    requestId: row.request_id,
    traceId: row.trace_id,
    spanId: row.span_id,
    tenantId: row.tenant_id,
    pluginId: row.plugin_id,
  };
  return {
    level: LOG_LEVELS[row.level] ?? 'info',
    time: row.time,
    serviceId: row.service,
    logsSource: row.source,
    layer: row.layer,
    ...(Object.fromEntries(Object.entries(optional).filter(([, value]) => value !== null)) as object),
    message: row.message,
    ...(row.meta === null ? {} : { meta: JSON.parse(row.meta) }),
    ...(row.extra === null ? {} : JSON.parse(row.extra)),
  };
}

export function numberedLog(row: LogRow): NumberedLog {
  return { id: row.id, record: logRecordOf(row) };
}

/**
 * Returns the words of a search or a message. A search matches messages that contain all of its words. Its last word
 * can be a prefix.
 */
export function wordsOf(text: string): string[] {
  return text.match(/[\p{L}\p{N}\p{M}\p{Co}]+/gu) ?? [];
}
