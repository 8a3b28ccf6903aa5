import { isRecord } from '../kit/data/is-record.ts';
import { escapeAllControls } from '../kit/security/escape-controls.ts';
import { LOG_LEVELS, type LogLevel } from '../kit/telemetry/logger.ts';
import type { Style } from './style.ts';

/**
 * Fields that are not printed as `key=value`. The line shows these fields in another form, or readers do not need these
 * fields.
 */
const OMITTED_FIELDS = new Set([
  'level',
  'time',
  'serviceId',
  'message',
  'meta',
  'logsSource',
  'layer',
  'traceId',
  'spanId',
  'evidence',
  'error',
]);

/** Fields of an access log record that also appear in the message of the record. */
const REQUEST_FIELDS = new Set(['method', 'route', 'status']);
const NO_FIELDS = new Set<string>();

/**
 * Returns a formatter that renders records as `[12:03:04.123] INFO (gateway): message key=value`. All texts are
 * escaped, because plugins write logs and pino-pretty keeps control characters.
 */
export async function loadRecordFormat(style: Style): Promise<(line: string) => string> {
  const { prettyFactory } = await import('pino-pretty');
  const pretty = prettyFactory({
    colorize: style.level > 0,
    // The default colour of `fatal` includes a background colour, which `escapeControls` would remove.
    customColors: 'fatal:red',
    useOnlyCustomProps: false,
    messageKey: 'message',
    // A function is used because a template string would remove the colours of the fields.
    messageFormat: ({ message }) => String(message),
    translateTime: 'SYS:HH:MM:ss.l',
    hideObject: true,
  });
  return (line) => {
    const record = recordOf(line);
    if (!record) return escapeAllControls(line);
    const { level, time, serviceId, message, error } = record;
    const meta = isRecord(record.meta) ? record.meta : {};
    const { error: metaError, stack: pluginStack, ...plain } = meta;
    const stack = stackOf(metaError ?? error ?? { stack: pluginStack });
    const shown = pretty({
      level: levelOf(level),
      time: typeof time === 'number' && Number.isFinite(new Date(time).getTime()) ? time : 0,
      name: escapeAllControls(String(serviceId ?? '')),
      message: escapeAllControls(String(message ?? '')) + style.dim(fieldsOf(record, plain)),
      // pino-pretty prints a stack below the line only for records of type `Error`.
      ...(stack === undefined ? {} : { type: 'Error', stack }),
    });
    return shown.trimEnd();
  };
}

function recordOf(line: string): Record<string, unknown> | undefined {
  try {
    const record: unknown = JSON.parse(line);
    return isRecord(record) ? record : undefined;
  } catch {
    return undefined;
  }
}

function levelOf(level: unknown): LogLevel {
  return LOG_LEVELS.find((known) => known === level) ?? 'info';
}

function fieldsOf(record: Record<string, unknown>, meta: Record<string, unknown>): string {
  const shown = record.message === `${meta.method} ${meta.route} ${meta.status}` ? REQUEST_FIELDS : NO_FIELDS;
  const own = Object.entries(record).filter(([key]) => !OMITTED_FIELDS.has(key));
  const fields = [...own, ...Object.entries(meta)].filter(([key]) => !shown.has(key));
  const texts = fields.map(([key, value]) => ` ${escapeAllControls(key)}=${inline(value)}`);
  return texts.length === 0 ? '' : ` ${texts.join('')}`;
}

function inline(value: unknown): string {
  if (typeof value === 'string')
    return escapeAllControls(/[\s"=]/.test(value) ? JSON.stringify(value) : value);
  return escapeAllControls(typeof value === 'object' ? JSON.stringify(value) : String(value));
}

function stackOf(error: unknown): string | undefined {
  const stack = (error as { stack?: unknown } | null | undefined)?.stack;
  if (typeof stack !== 'string') return undefined;
  return stack.split('\n').map(escapeAllControls).join('\n');
}
