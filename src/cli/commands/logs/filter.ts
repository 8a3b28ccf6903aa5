import { durationMs } from '../../../contracts/duration-text.ts';
import type { CallInput, queryLogs } from '../../../contracts/index.ts';
import { LOG_LEVELS, type LogLevel } from '../../../kit/telemetry/logger.ts';
import { UsageError } from '../../parse-args.ts';

/** Conditions on log records. An absent condition matches every record. */
export interface LogChoice {
  services: readonly string[];
  level?: LogLevel | undefined;
  /** Earliest time, in epoch milliseconds. */
  since?: number | undefined;
  requestId?: string | undefined;
  traceId?: string | undefined;
  runId?: string | undefined;
  pluginId?: string | undefined;
  search?: string | undefined;
  tenantId?: string | undefined;
}

export type LogQuery = NonNullable<CallInput<typeof queryLogs>['query']>;

export function toQuery({ services, since, ...fields }: LogChoice): LogQuery {
  return {
    ...(services.length > 0 ? { service: services.join(',') } : {}),
    ...(since === undefined ? {} : { from: String(since) }),
    ...Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)),
  };
}

/**
 * Returns a filter for lines of log files. Stored log records need no filter, because the database query applies the
 * conditions.
 */
export function toFilter(choice: LogChoice): (line: string) => boolean {
  const { services: _, since, level, search, runId, ...ids } = choice;
  const exactFields = Object.entries({ ...ids }).filter(([, value]) => value !== undefined);
  if (exactFields.length === 0 && since === undefined && !level && !search && !runId) return () => true;
  const words = search?.toLowerCase().split(/\s+/).filter(Boolean) ?? [];
  return (line) => {
    const record = parse(line);
    if (!record) return false;
    const message = String(record.message).toLowerCase();
    return (
      exactFields.every(([name, value]) => record[name] === value) &&
      (since === undefined || Number(record.time) >= since) &&
      (!level || LOG_LEVELS.indexOf(record.level as LogLevel) >= LOG_LEVELS.indexOf(level)) &&
      (!runId || (record.meta as { runId?: unknown } | undefined)?.runId === runId) &&
      words.every((word) => message.includes(word))
    );
  };
}

function parse(line: string): Record<string, unknown> | undefined {
  try {
    return JSON.parse(line) as Record<string, unknown>;
  } catch {
    return undefined;
  }
}

/** Parses a duration before `now` (`10m`, `2h`, `1d`) or an ISO 8601 time. Returns epoch milliseconds. */
export function parseSince(text: string, now: number, flag = '--since'): number {
  const ago = durationMs(text.replace(/\s+/, ''));
  if (ago !== undefined) return now - ago;
  const time = Date.parse(text);
  if (Number.isFinite(time)) return time;
  throw new UsageError(
    `${flag} ${text} is neither a duration (30s, 10m, 2h, 1d) nor a time (2030-01-31T12:00).`,
  );
}
