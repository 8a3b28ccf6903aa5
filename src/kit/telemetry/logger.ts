import pino from 'pino';
import type { Clock } from '../time/clock.ts';
import type { LineOutput } from './output.ts';
import { redact, redactText } from './redact.ts';

export const LOG_LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'fatal'] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

/** Fields of a log record besides level, time and message. `meta` contains free-form data. @spec Log record */
export interface LogFields {
  logsSource?: string;
  layer?: string;
  requestId?: string;
  traceId?: string;
  spanId?: string;
  tenantId?: string;
  pluginId?: string;
  meta?: Record<string, unknown>;
  /** Any thrown value, which is written to `meta.error`. */
  error?: unknown;
}

/** A log record about an event that can require action by an operator. @spec Diagnostic events */
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
  /**
   * Writes one log line per finished request. Formats the line without pino, because pino takes three times as long.
   */
  access(method: string, route: string, status: number, durationMs: number, ids: AccessIds): void;
};

export interface AccessIds {
  requestId: string;
  traceId: string;
  tenantId: string;
  spanId?: string;
  /** Span of the caller, if it sent one. */
  parentSpanId?: string | undefined;
}

export interface LoggerOptions {
  serviceId: string;
  output: LineOutput;
  clock: Clock;
  level?: LogLevel;
}

/**
 * Creates a logger that writes records as JSON lines. Secrets are masked before a line is formatted. @spec Log record
 */
export function createLogger({ serviceId, output, clock, level = 'info' }: LoggerOptions): Logger {
  const base = pino(
    {
      level,
      base: { serviceId },
      messageKey: 'message',
      timestamp: () => `,"time":${clock.now()}`,
      formatters: { level: (label) => ({ level: label }) },
    },
    { write: (line: string) => output.write(line) },
  );
  return wrap(base, {}, base.isLevelEnabled('info') ? accessLine(serviceId, output, clock) : () => {});
}

function accessLine(serviceId: string, output: LineOutput, clock: Clock): Logger['access'] {
  const service = JSON.stringify(serviceId);
  // Clients choose request and trace ids, so quotes and backslashes must be escaped.
  const quote = (text: string): string => (/["\\]/.test(text) ? JSON.stringify(text) : `"${text}"`);
  return (method, route, status, durationMs, { requestId, traceId, tenantId, spanId, parentSpanId }) => {
    const level = status >= 500 ? 'error' : 'info';
    const ms = Math.round(durationMs * 100) / 100;
    output.write(
      `{"level":"${level}","time":${clock.now()},"serviceId":${service},"logsSource":"platform","layer":"http",` +
        `"requestId":${quote(requestId)},"traceId":${quote(traceId)},${spanId === undefined ? '' : `"spanId":"${spanId}",`}${tenantId === '' ? '' : `"tenantId":${quote(tenantId)},`}` +
        `"message":${quote(`${method} ${route} ${status}`)},` +
        `"meta":{"method":"${method}","route":${quote(route)},"status":${status},"durationMs":${ms}${parentSpanId === undefined ? '' : `,"parentSpanId":"${parentSpanId}"`}}}\n`,
    );
  };
}

function wrap(target: pino.Logger, inherited: LogFields, access: Logger['access']): Logger {
  const at = (level: LogLevel) => (message: string, fields?: LogFields) => {
    if (!target.isLevelEnabled(level)) return;
    const all = { ...inherited, ...fields };
    target[level](record(all), redactText(message, all.tenantId));
  };
  const levels = Object.fromEntries(LOG_LEVELS.map((level) => [level, at(level)]));
  return {
    ...(levels as Record<LogLevel, ReturnType<typeof at>>),
    child: (fields) => wrap(target, { ...inherited, ...fields }, access),
    access,
    isEnabled: (level) => target.isLevelEnabled(level),
    diagnostic({ level, message, error, evidence, ...event }, fields) {
      const all = { ...inherited, ...fields };
      const { tenantId } = all;
      target[level](
        {
          ...record(all),
          ...event,
          ...(error === undefined ? {} : { error: redact(error, tenantId) }),
          evidence: redact(evidence ?? {}, tenantId),
        },
        redactText(message, tenantId),
      );
    },
  };
}

/** These defaults are not pino bindings, because pino would write both the default and an overriding field. */
const DEFAULTS: LogFields = { logsSource: 'platform', layer: 'service' };

function record({ error, meta, ...given }: LogFields): Record<string, unknown> {
  const fields = { ...DEFAULTS, ...given };
  if (meta === undefined && error === undefined) return fields;
  return { ...fields, meta: redact(error === undefined ? meta : { ...meta, error }, given.tenantId) };
}

/** Discards all records. Used by tests and tools. */
export const silentLogger: Logger = createLogger({
  serviceId: 'silent',
  output: { write: () => {}, flush: () => {} },
  clock: { now: () => 0, monotonic: () => 0, after: () => () => {} },
  level: 'fatal',
});
