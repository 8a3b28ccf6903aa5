import { isRecord } from '../../kit/data/is-record.ts';
import { createTokenBucket, type TokenBucket } from '../../kit/limits/token-bucket.ts';
import { LOG_LEVELS, type LogFields, type Logger, type LogLevel } from '../../kit/telemetry/logger.ts';
import type { Clock } from '../../kit/time/clock.ts';
import type { PlatformService } from '../execution.ts';

/** Rate limit for the log lines of one plugin. All processes of the plugin share the limit. */
export const LOG_BUDGET = { linesPerSecond: 400, linesAtOnce: 800 } as const;
const MESSAGE_CHARS = 8 * 1024;
const META_CHARS = 16 * 1024;
const REPORT_DROPS_MS = 5000;

/** Receives log lines of plugin code. Arguments are untrusted. */
export interface PluginLogSink {
  write(fields: LogFields & { pluginId: string }, level: unknown, message: unknown, meta?: unknown): void;
}

interface Budget {
  bucket: TokenBucket;
  dropped: number;
}

/**
 * Creates the sink for log lines of plugins. Truncates long lines. Drops lines above the rate limit of the plugin, and
 * logs the number of dropped lines.
 */
export function createPluginLogSink({ logger, clock }: { logger: Logger; clock: Clock }): PluginLogSink {
  const budgets = new Map<string, Budget>();

  function budgetOf(pluginId: string): Budget {
    let budget = budgets.get(pluginId);
    if (!budget) {
      budget = {
        bucket: createTokenBucket(clock, LOG_BUDGET.linesPerSecond, LOG_BUDGET.linesAtOnce),
        dropped: 0,
      };
      budgets.set(pluginId, budget);
    }
    return budget;
  }

  function drop(budget: Budget, pluginId: string): void {
    if (budget.dropped++ > 0) return;
    clock.after(REPORT_DROPS_MS, () => {
      logger.warn(`${budget.dropped} log lines of the plugin were dropped: the rate limit was exceeded`, {
        pluginId,
        logsSource: 'plugin',
        meta: { dropped: budget.dropped },
      });
      budget.dropped = 0;
    });
  }
  return {
    write(fields, level, message, meta) {
      const budget = budgetOf(fields.pluginId);
      if (!budget.bucket.take(1)) return drop(budget, fields.pluginId);
      const text = typeof message === 'string' ? message : String(JSON.stringify(message));
      logger[levelOf(level)](text.slice(0, MESSAGE_CHARS), {
        ...fields,
        logsSource: 'plugin',
        ...(isRecord(meta) ? { meta: bounded(meta) } : {}),
      });
    },
  };
}

function levelOf(level: unknown): LogLevel {
  return LOG_LEVELS.find((known) => known === level) ?? 'info';
}

function bounded(meta: Record<string, unknown>): Record<string, unknown> {
  const { length } = JSON.stringify(meta);
  return length <= META_CHARS ? meta : { dropped: `${length} characters of meta` };
}

/** Creates `ctx.log`, whose only platform call is `write(level, message, meta)`. */
export function createLogService(sink: PluginLogSink): PlatformService {
  return {
    async write({ request }, [level, message, meta]) {
      const { requestId, traceId, spanId, tenantId, plugin } = request;
      const span = spanId === undefined ? {} : { spanId };
      sink.write({ requestId, traceId, ...span, tenantId, pluginId: plugin.id }, level, message, meta);
    },
  };
}
