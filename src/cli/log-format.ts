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

/** One log record as a person reads it: `12:03:04.123 INFO  gateway  message  key=value`. Anything else stays as it is. */
export function formatRecord(line: string, style: Style): string {
  let record: Record<string, unknown>;
  try {
    record = JSON.parse(line) as Record<string, unknown>;
  } catch {
    return line;
  }
  const level = String(record.level) as keyof typeof LEVEL_COLOURS;
  const colour = style[LEVEL_COLOURS[level] ?? 'white'];
  const { meta } = record;
  const { error, ...plain } = (typeof meta === 'object' && meta !== null ? meta : {}) as Record<
    string,
    unknown
  >;
  const own = Object.entries(record).filter(
    ([key]) => !PLACED.has(key) && key !== 'evidence' && key !== 'error',
  );
  const fields = [...own, ...Object.entries(plain)].map(([key, value]) => `${key}=${inline(value)}`);
  const head = [
    style.dim(timeOfDay(Number(record.time))),
    colour(level.toUpperCase().padEnd(5)),
    style.cyan(String(record.serviceId ?? '').padEnd(11)),
    harmless(String(record.message ?? '')),
  ].join(' ');
  const stack = stackOf(error ?? record.error);
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
  if (typeof value === 'string') return harmless(/[\s"=]/.test(value) ? JSON.stringify(value) : value);
  return harmless(typeof value === 'object' ? JSON.stringify(value) : String(value));
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what it is about.
const CONTROL = /[\u0000-\u001f\u007f-\u009f\u2028\u2029]/g;

/** Control characters spelt out: plugins write into these lines, and must not move the cursor or forge a line. */
function harmless(text: string): string {
  return text.replace(CONTROL, (character) =>
    character === '\n' ? '\\n' : `\\x${character.charCodeAt(0).toString(16).padStart(2, '0')}`,
  );
}

/** The stack of a logged error, indented under its line. */
function stackOf(error: unknown): string | undefined {
  const stack = (error as { stack?: unknown } | null | undefined)?.stack;
  if (typeof stack !== 'string') return undefined;
  return stack
    .split('\n')
    .map((line) => `    ${harmless(line)}`)
    .join('\n');
}
