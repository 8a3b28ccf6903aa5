import { AsyncLocalStorage } from 'node:async_hooks';
import console from 'node:console';
import { format, inspect } from 'node:util';
import type { PluginLog } from '../../contracts/index.ts';
import { createTokenBucket } from '../../kit/limits/token-bucket.ts';
import { type Clock, systemClock } from '../../kit/time/clock.ts';
import type { Channel } from './channel.ts';
import { messageOf } from './failure.ts';
import type { RunnerLimits } from './protocol.ts';

/** Stores the id of the running execution, so that `console.log` output is attributed to its request. */
export const currentExecution = new AsyncLocalStorage<string>();

const LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'fatal'] as const;
type Level = (typeof LEVELS)[number];
type WriteLine = (level: Level, message: string, meta?: unknown) => void;

/** Delay before a warning reports the number of dropped log lines. */
const REPORT_DROPS_MS = 1000;

/**
 * Creates a writer that sends log lines as frames. Truncates long lines. Drops and counts lines above the rate limit.
 */
export function createLogWriter(
  channel: Channel,
  limits: RunnerLimits,
  clock: Clock = systemClock,
): WriteLine {
  const budget = createTokenBucket(clock, limits.logLinesPerSecond, limits.logLinesAtOnce);
  let dropped = 0;

  function emit(level: Level, message: string, meta?: unknown): void {
    const executionId = currentExecution.getStore();
    const head = JSON.stringify({
      type: 'log',
      ...(executionId === undefined ? {} : { executionId }),
      level,
      message: cut(message, limits.logMessageChars),
    });
    const metaText = meta === undefined ? undefined : metaJson(meta, limits.logMessageChars);
    channel.sendText(metaText === undefined ? head : `${head.slice(0, -1)},"meta":${metaText}}`);
  }
  function report(): void {
    emit('warn', `${dropped} log lines were dropped: more than ${limits.logLinesPerSecond} a second`);
    dropped = 0;
  }

  return (level, message, meta) => {
    if (budget.take(1)) return emit(level, message, meta);
    if (dropped++ === 0) clock.after(REPORT_DROPS_MS, report);
  };
}

function cut(text: string, limit: number): string {
  return text.length > limit ? `${text.slice(0, limit)}… [${text.length - limit} more characters]` : text;
}

/**
 * Serializes the fields of a log line. Replaces values that are too large or not JSON by a description. Log fields must
 * never fail a handler.
 */
function metaJson(meta: unknown, limit: number): string {
  try {
    const text = JSON.stringify(meta);
    if (text === undefined || typeof meta !== 'object')
      return JSON.stringify({ value: cut(String(meta), limit) });
    return text.length <= limit * 2 ? text : JSON.stringify({ dropped: `${text.length} characters of meta` });
  } catch (error) {
    return JSON.stringify({ dropped: cut(messageOf(error), limit) });
  }
}

export function createPluginLog(write: WriteLine): PluginLog {
  const methods = LEVELS.map((level) => [
    level,
    (message: unknown, meta?: unknown) =>
      write(level, typeof message === 'string' ? message : inspect(message), meta),
  ]);
  return Object.freeze(Object.fromEntries(methods)) as PluginLog;
}

/** Converts console output to log lines. The parent process captures other writes to stdout. */
export function captureConsole(write: WriteLine): void {
  const levels: Record<string, Level> = {
    debug: 'debug',
    log: 'info',
    info: 'info',
    dir: 'info',
    dirxml: 'info',
    table: 'info',
    trace: 'debug',
    warn: 'warn',
    error: 'error',
  };
  for (const [name, level] of Object.entries(levels)) {
    Object.defineProperty(console, name, {
      value: (...args: unknown[]) => write(level, format(...args)),
      writable: true,
      configurable: true,
    });
  }
  console.assert = (claim?: unknown, ...args: unknown[]) => {
    if (!claim) write('error', `Assertion failed${args.length > 0 ? `: ${format(...args)}` : ''}`);
  };
}
