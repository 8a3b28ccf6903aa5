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
  /** One line per finished request, written by hand: a third of the cost of a general record. */
  access(method: string, route: string, status: number, durationMs: number, ids: AccessIds): void;
};

export interface AccessIds {
  requestId: string;
  traceId: string;
  tenantId: string;
  spanId?: string;
}

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
  // A client chooses its ids; quotes and backslashes are visible characters, so they are escaped only when there are any.
  const quote = (text: string): string => (/["\\]/.test(text) ? JSON.stringify(text) : `"${text}"`);
  return (method, route, status, durationMs, { requestId, traceId, tenantId, spanId }) => {
    const level = status >= 500 ? 'error' : 'info';
    const ms = Math.round(durationMs * 100) / 100;
    output.write(
      `{"level":"${level}","time":${clock.now()},"serviceId":${service},"logsSource":"platform","layer":"http",` +
        `"requestId":${quote(requestId)},"traceId":${quote(traceId)},${spanId === undefined ? '' : `"spanId":"${spanId}",`}${tenantId === '' ? '' : `"tenantId":${quote(tenantId)},`}` +
        `"message":${quote(`${method} ${route} ${status}`)},` +
        `"meta":{"method":"${method}","route":${quote(route)},"status":${status},"durationMs":${ms}}}\n`,
    );
  };
}

function wrap(target: pino.Logger, inherited: LogFields, access: Logger['access']): Logger {
  const at = (level: LogLevel) => (message: string, fields?: LogFields) => {
    if (target.isLevelEnabled(level)) target[level](record({ ...inherited, ...fields }), redactText(message));
  };
  const levels = Object.fromEntries(LOG_LEVELS.map((level) => [level, at(level)]));
  return {
    ...(levels as Record<LogLevel, ReturnType<typeof at>>),
    child: (fields) => wrap(target, { ...inherited, ...fields }, access),
    access,
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

/** pino's own bindings would stand in the line a second time beside a field that overrides them. */
const DEFAULTS: LogFields = { logsSource: 'platform', layer: 'service' };

function record({ error, meta, ...given }: LogFields): Record<string, unknown> {
  const fields = { ...DEFAULTS, ...given };
  if (meta === undefined && error === undefined) return fields;
  return { ...fields, meta: redact(error === undefined ? meta : { ...meta, error }) };
}

/** Discards everything; for tests and tools. */
export const silentLogger: Logger = createLogger({
  serviceId: 'silent',
  output: { write: () => {}, flush: () => {} },
  clock: { now: () => 0, monotonic: () => 0, after: () => () => {} },
  level: 'fatal',
});
