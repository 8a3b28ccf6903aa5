import { LOG_LEVEL_META_KEY, type LoggingLevel, type ServerContext } from '@modelcontextprotocol/server';
import { createBoundedCache } from '../../../kit/data/bounded-cache.ts';

const MAX_CALLERS = 10_000;

/** Levels of MCP, by severity. */
const LEVELS: readonly LoggingLevel[] = [
  'debug',
  'info',
  'notice',
  'warning',
  'error',
  'critical',
  'alert',
  'emergency',
];
const LEVEL_OF: Readonly<Record<string, LoggingLevel>> = {
  trace: 'debug',
  warn: 'warning',
  fatal: 'critical',
};

/**
 * Sends log lines of handlers to clients. In the revision 2026-07-28 each request names its level. Earlier revisions set
 * the level once; as there are no sessions, this process remembers it for the caller. Without a level, nothing is sent.
 */
export class ClientLogs {
  readonly #levels = createBoundedCache<LoggingLevel>(MAX_CALLERS);

  setLevel(caller: string, level: LoggingLevel): void {
    this.#levels.set(caller, level);
  }

  send(
    { mcpReq }: ServerContext,
    caller: string,
    { level, message, source }: { level: string; message: string; source: string },
  ): void {
    const threshold = mcpReq.envelope
      ? (mcpReq.envelope as Record<string, unknown>)[LOG_LEVEL_META_KEY]
      : this.#levels.get(caller);
    const shown = LEVEL_OF[level] ?? LEVELS.find((known) => known === level) ?? 'info';
    if (threshold === undefined || LEVELS.indexOf(shown) < LEVELS.indexOf(threshold as LoggingLevel)) return;
    const params = { level: shown, logger: source, data: message };
    mcpReq.notify({ method: 'notifications/message', params }).catch(() => {});
  }
}
