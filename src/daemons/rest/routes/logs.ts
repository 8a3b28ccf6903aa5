import { setTimeout as sleep } from 'node:timers/promises';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { HEADERS, queryLogs, type Validated } from '../../../contracts/index.ts';
import { type Http, mount } from '../../../http/index.ts';
import { messageOf, PlatformError } from '../../../kit/errors.ts';
import type { LogFilter, NumberedLog } from '../../../store/ports/telemetry.ts';
import type { TelemetryReader } from '../../../store/sqlite/telemetry-reader.ts';
import { given, timeRange, visibleTenant } from '../domain/logs-scope.ts';
import type { RestServices } from '../services.ts';

type Query = Validated<typeof queryLogs>['query'];

const POLL_MS = 300;
/** Proxies take a silent connection for a dead one. */
const HEARTBEAT_MS = 15_000;
const STREAM_PAGE = 500;
/** Each asks the store three times a second. */
const MOST_STREAMS = 32;

/** @spec REST API: logs; docs/observability.md "Logs" */
export function logRoutes(http: Http, { telemetry, observe, admins }: RestServices): void {
  let streams = 0;

  mount(http, queryLogs, { auth: 'caller' }, async ({ query, caller, request, reply }) => {
    const tenantId = visibleTenant(caller, query.tenantId, admins);
    const filter = filterOf(query, tenantId);
    const follows = query.follow === '1' || query.follow === 'true';
    if (!follows) {
      const { limit, offset } = query;
      const page = await observe('logs', 'query_logs', () => telemetry.logs(filter, { limit, offset }));
      return { ...page, limit, offset };
    }
    if (streams >= MOST_STREAMS) {
      throw new PlatformError('SERVICE_UNAVAILABLE', `${MOST_STREAMS} callers follow the logs already.`, {
        headers: { 'retry-after': '10' },
      });
    }
    streams++;
    try {
      await stream(http, telemetry, filter, query, request, reply);
    } finally {
      streams--;
    }
    return reply as never;
  });
}

function filterOf(query: Query, tenantId: string | undefined): LogFilter {
  const services = query.service?.split(',').filter(Boolean);
  return {
    ...given(query, ['requestId', 'traceId', 'pluginId', 'runId', 'search']),
    ...timeRange(query),
    ...(query.level ? { level: query.level } : {}),
    ...(tenantId === undefined ? {} : { tenantId }),
    ...(services?.length ? { services } : {}),
  };
}

/** Server-sent events whose id is the cursor to go on from; ends with the connection or the daemon. */
async function stream(
  http: Http,
  telemetry: TelemetryReader,
  filter: LogFilter,
  query: Query,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<void> {
  // What fails before the first byte is still answered as an error.
  const cursor = resumeAfter(request, query);
  let { items, after } =
    cursor === undefined
      ? await telemetry.latestLogs(filter, query.limit)
      : { items: await telemetry.logsAfter(filter, cursor, STREAM_PAGE), after: cursor };
  reply.hijack();
  const { raw } = reply;
  raw.writeHead(200, {
    'content-type': 'text/event-stream; charset=utf-8',
    'cache-control': 'no-store',
    'x-content-type-options': 'nosniff',
    [HEADERS.requestId]: request.id,
  });
  // The place to go on from even when nothing comes before the connection is lost.
  raw.write(`: go on after an event by its id, as Last-Event-ID or after=\nid: ${after}\n\n`);
  const gone = new AbortController();
  raw.once('close', () => gone.abort());
  let writtenAt = performance.now();
  try {
    while (!gone.signal.aborted && !http.kit.draining) {
      if (items.length > 0) {
        after = Math.max(after, items.at(-1)!.id);
        writtenAt = performance.now();
        await send(raw, items.map(eventText).join(''), gone.signal);
      } else if (performance.now() - writtenAt > HEARTBEAT_MS) {
        writtenAt = performance.now();
        await send(raw, ': still here\n\n', gone.signal);
      }
      // Paced by real time: it waits for another process to write, not for a moment.
      if (items.length < STREAM_PAGE) await sleep(POLL_MS, undefined, { signal: gone.signal });
      items = await telemetry.logsAfter(filter, after, STREAM_PAGE);
    }
  } catch (error) {
    if (!gone.signal.aborted) {
      http.kit.logger.warn(`A stream of logs ended: ${messageOf(error)}`, { requestId: request.id, error });
    }
  }
  raw.end();
  http.kit.account(request, 200);
}

function resumeAfter(request: FastifyRequest, query: Query): number | undefined {
  const header = request.headers['last-event-id'];
  return typeof header === 'string' && /^\d{1,15}$/.test(header) ? Number(header) : query.after;
}

function eventText({ id, record }: NumberedLog): string {
  return `id: ${id}\ndata: ${JSON.stringify(record)}\n\n`;
}

/** Waits for a reader that is slower than we are, instead of holding what it has not read. */
async function send(raw: FastifyReply['raw'], text: string, signal: AbortSignal): Promise<void> {
  if (raw.write(text)) return;
  await new Promise<void>((resolve) => {
    raw.once('drain', resolve);
    signal.addEventListener('abort', () => resolve(), { once: true });
  });
}
