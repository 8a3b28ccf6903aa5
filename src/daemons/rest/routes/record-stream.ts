import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { HEADERS } from '../../../contracts/index.ts';
import type { Http } from '../../../http/index.ts';
import { messageOf, PlatformError } from '../../../kit/errors.ts';
import type { Numbered } from '../../../store/ports/telemetry.ts';

const POLL_MS = 300;
/** Proxies take a silent connection for a dead one. */
const HEARTBEAT_MS = 15_000;
const STREAM_PAGE = 500;
/** Each asks the store three times a second. */
const MOST_STREAMS = 32;

/** Kept records in the order in which they came. */
export interface RecordSource {
  latest(limit: number): Promise<{ items: Array<Numbered<unknown>>; after: number }>;
  after(id: number, limit: number): Promise<Array<Numbered<unknown>>>;
}

/** Whether the query asks for a stream, and from where. */
export interface FollowQuery {
  follow?: '0' | '1' | 'true' | 'false' | undefined;
  after?: number | undefined;
  limit: number;
}

export const follows = ({ follow }: FollowQuery): boolean => follow === '1' || follow === 'true';

export interface RecordStreams {
  /** Settles when the stream has ended. Throws SERVICE_UNAVAILABLE where too many follow already. */
  stream(
    source: RecordSource,
    query: FollowQuery,
    request: FastifyRequest,
    reply: FastifyReply,
  ): Promise<void>;
}

/** Server-sent events whose id is the cursor to go on from; each ends with the connection or the daemon. */
export function createRecordStreams(http: Http, what: string): RecordStreams {
  let streams = 0;
  return {
    async stream(source, query, request, reply) {
      if (streams >= MOST_STREAMS) {
        throw new PlatformError(
          'SERVICE_UNAVAILABLE',
          `${MOST_STREAMS} callers follow the ${what} already.`,
          {
            headers: { 'retry-after': '10' },
          },
        );
      }
      streams++;
      try {
        await send(http, source, query, request, reply);
      } finally {
        streams--;
      }
    },
  };
}

async function send(
  http: Http,
  source: RecordSource,
  query: FollowQuery,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<void> {
  // What fails before the first byte is still answered as an error.
  const cursor = resumeAfter(request, query);
  let { items, after } =
    cursor === undefined
      ? await source.latest(query.limit)
      : { items: await source.after(cursor, STREAM_PAGE), after: cursor };
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
        await write(raw, items.map(eventText).join(''), gone.signal);
      } else if (performance.now() - writtenAt > HEARTBEAT_MS) {
        writtenAt = performance.now();
        await write(raw, ': still here\n\n', gone.signal);
      }
      // Paced by real time: it waits for another process to write, not for a moment.
      if (items.length < STREAM_PAGE) await sleep(POLL_MS, undefined, { signal: gone.signal });
      items = await source.after(after, STREAM_PAGE);
    }
  } catch (error) {
    if (!gone.signal.aborted) {
      http.kit.logger.warn(`A stream of records ended: ${messageOf(error)}`, {
        requestId: request.id,
        error,
      });
    }
  }
  raw.end();
  http.kit.account(request, 200);
}

function resumeAfter(request: FastifyRequest, query: FollowQuery): number | undefined {
  const header = request.headers['last-event-id'];
  return typeof header === 'string' && /^\d{1,15}$/.test(header) ? Number(header) : query.after;
}

function eventText({ id, record }: Numbered<unknown>): string {
  return `id: ${id}\ndata: ${JSON.stringify(record)}\n\n`;
}

/** Waits for a reader that is slower than we are, instead of holding what it has not read. */
async function write(raw: FastifyReply['raw'], text: string, signal: AbortSignal): Promise<void> {
  if (raw.write(text)) return;
  await once(raw, 'drain', { signal }).catch(() => {});
}
