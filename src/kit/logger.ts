import pino from 'pino';
import type { Clock } from './clock.ts';
import type { LineOutput } from './output.ts';
import { redact, redactText } from './redact.ts';

export const LOG_LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'fatal'] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

/** The record's fields beside level, time and message; `meta` holds everything of one's own. @spec Log record */
export interface LogFields {
  logsSource?: string;
  layer?: string;
  requestId?: string;
  traceId?: string;
  spanId?: string;
  tenantId?: string;
  pluginId?: string;
  meta?: Record<string, unknown>;
  /** Anything thrown; lands in `meta.error`. */
  error?: unknown;
}

/** An ordinary log line with extra fields, for what an operator acts on. @spec Diagnostic events */
export interface Diagnostic {
  domain: string;
  event: string;
  level: LogLevel;
  reasonCode: string;
  message: string;
  outcome: 'succeeded' | 'failed' | 'refused' | 'degraded';
  error?: unknown;
  evidence?: Record<string, unknown>;
}

export type Logger = Record<LogLevel, (message: string, fields?: LogFields) => void> & {
  child(fields: LogFields): Logger;
  diagnostic(event: Diagnostic, fields?: LogFields): void;
  isEnabled(level: LogLevel): boolean;
};

export interface LoggerOptions {
  serviceId: string;
  output: LineOutput;
  clock: Clock;
  level?: LogLevel;
}

/** Writes the spec's log record, one JSON document a line, secrets masked before the line exists. @spec Log record */
export function createLogger({ serviceId, output, clock, level = 'info' }: LoggerOptions): Logger {
  const base = pino(
    {
      level,
      base: { serviceId, logsSource: 'platform', layer: 'service' },
      messageKey: 'message',
      timestamp: () => `,"time":${clock.now()}`,
      formatters: { level: (label) => ({ level: label }) },
    },
    { write: (line: string) => output.write(line) },
  );
  return wrap(base, {});
}

function wrap(target: pino.Logger, inherited: LogFields): Logger {
  const at = (level: LogLevel) => (message: string, fields?: LogFields) => {
    if (target.isLevelEnabled(level)) target[level](record({ ...inherited, ...fields }), redactText(message));
  };
  const levels = Object.fromEntries(LOG_LEVELS.map((level) => [level, at(level)]));
  return {
    ...(levels as Record<LogLevel, ReturnType<typeof at>>),
    child: (fields) => wrap(target, { ...inherited, ...fields }),
    isEnabled: (level) => target.isLevelEnabled(level),
    diagnostic({ level, message, error, evidence, ...event }, fields) {
      target[level](
        {
          ...record({ ...inherited, ...fields }),
          ...event,
          ...(error === undefined ? {} : { error: redact(error) }),
          evidence: redact(evidence ?? {}),
        },
        redactText(message),
      );
    },
  };
}

function record({ error, meta, ...fields }: LogFields): Record<string, unknown> {
  if (meta === undefined && error === undefined) return fields;
  return { ...fields, meta: redact(error === undefined ? meta : { ...meta, error }) };
}

/** Discards everything; for tests and tools. */
export const silentLogger: Logger = createLogger({
  serviceId: 'silent',
  output: { write: () => {}, flush: () => {} },
  clock: { now: () => 0, after: () => () => {} },
  level: 'fatal',
});
