import { spelledOut } from './harmless.ts';
import type { Style } from './style.ts';

const LEVEL_COLOURS = {
  trace: 'gray',
  debug: 'gray',
  info: 'green',
  warn: 'yellow',
  error: 'red',
  fatal: 'red',
} as const;

/** Fields that have a place of their own in the line, or say nothing to a person who reads along. */
const PLACED = new Set([
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

/** What the message of a request's line says by itself. */
const OF_REQUEST = new Set(['method', 'route', 'status']);
const NOTHING = new Set<string>();

/** One log record as a person reads it: `12:03:04.123 INFO  gateway  message  key=value`. Anything else stays as it is. */
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
    ([key]) => !PLACED.has(key) && key !== 'evidence' && key !== 'error',
  );
  const said = record.message === `${plain.method} ${plain.route} ${plain.status}` ? OF_REQUEST : NOTHING;
  const fields = [...own, ...Object.entries(plain)]
    .filter(([key]) => !said.has(key))
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

/** The stack of a logged error, indented under its line. */
function stackOf(error: unknown): string | undefined {
  const stack = (error as { stack?: unknown } | null | undefined)?.stack;
  if (typeof stack !== 'string') return undefined;
  return stack
    .split('\n')
    .map((line) => `    ${spelledOut(line)}`)
    .join('\n');
}
