import { spelledOut } from '../kit/security/harmless.ts';
import type { Style } from './style.ts';

const LEVEL_COLOURS = {
  trace: 'gray',
  debug: 'gray',
  info: 'green',
  warn: 'yellow',
  error: 'red',
  fatal: 'red',
} as const;

/** Fields shown elsewhere in the line, or not useful to people. */
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
]);

/** Fields already part of the message of an access log line. */
const REQUEST_FIELDS = new Set(['method', 'route', 'status']);
const NO_FIELDS = new Set<string>();

/** Formats a log record: `12:03:04.123 INFO  gateway  message  key=value`. Lines that are not records are only escaped. */
export function formatRecord(line: string, style: Style): string {
  let record: Record<string, unknown>;
  try {
    record = JSON.parse(line) as Record<string, unknown>;
  } catch {
    return spelledOut(line);
  }
  const level = String(record.level) as keyof typeof LEVEL_COLOURS;
  const colour = style[LEVEL_COLOURS[level] ?? 'gray'];
  const { meta } = record;
  const {
    error,
    stack: pluginStack,
    ...plain
  } = (typeof meta === 'object' && meta !== null ? meta : {}) as Record<string, unknown>;
  const own = Object.entries(record).filter(
    ([key]) => !OMITTED_FIELDS.has(key) && key !== 'evidence' && key !== 'error',
  );
  const shown =
    record.message === `${plain.method} ${plain.route} ${plain.status}` ? REQUEST_FIELDS : NO_FIELDS;
  const fields = [...own, ...Object.entries(plain)]
    .filter(([key]) => !shown.has(key))
    .map(([key, value]) => `${spelledOut(key)}=${inline(value)}`);
  const head = [
    style.dim(timeOfDay(Number(record.time))),
    colour(spelledOut(level).toUpperCase().padEnd(5)),
    style.cyan(spelledOut(String(record.serviceId ?? '')).padEnd(11)),
    spelledOut(String(record.message ?? '')),
  ].join(' ');
  const stack = stackOf(error ?? record.error ?? { stack: pluginStack });
  return [
    head + (fields.length > 0 ? style.dim(`  ${fields.join(' ')}`) : ''),
    ...(stack ? [style.dim(stack)] : []),
  ].join('\n');
}

function timeOfDay(time: number): string {
  if (!Number.isFinite(time)) return '--:--:--.---';
  const at = new Date(time);
  const two = (n: number): string => String(n).padStart(2, '0');
  return `${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}.${String(at.getMilliseconds()).padStart(3, '0')}`;
}

function inline(value: unknown): string {
  if (typeof value === 'string') return spelledOut(/[\s"=]/.test(value) ? JSON.stringify(value) : value);
  return spelledOut(typeof value === 'object' ? JSON.stringify(value) : String(value));
}

/** Stack of a logged error, indented. */
function stackOf(error: unknown): string | undefined {
  const stack = (error as { stack?: unknown } | null | undefined)?.stack;
  if (typeof stack !== 'string') return undefined;
  return stack
    .split('\n')
    .map((line) => `    ${spelledOut(line)}`)
    .join('\n');
}
