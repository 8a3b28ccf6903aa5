import type { ServerResponse } from 'node:http';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { HEADERS } from '../../../contracts/index.ts';
import type { Http } from '../../../http/index.ts';
import type { Clock } from '../../../kit/clock.ts';
import { errorBody, toPlatformError } from '../../../kit/errors.ts';
import type { Page } from '../domain/desks/run-desk.ts';
import type { RunWatch } from '../domain/desks/run-watch.ts';

export interface LiveSource<Item extends { id: number }> {
  watch: RunWatch;
  clock: Clock;
  runId: string;
  /** What comes after a cursor. Its first call may throw: then it is an ordinary error. */
  page(cursor: string | undefined): Promise<Page<Item>>;
  /** Whether the run is over: the stream ends after its last item. */
  isOver(): Promise<boolean>;
  streams: LiveStreams;
}

/** A comment so often keeps proxies from closing a quiet stream. */
const KEEP_ALIVE_MS = 15_000;

/** The streams that are open: they would keep the service from stopping. */
export type LiveStreams = Set<() => void>;

/** Ends every open stream when the server closes; whoever follows one connects anew. */
export function liveStreams(http: Http): LiveStreams {
  const streams: LiveStreams = new Set();
  http.addHook('preClose', async () => {
    for (const end of streams) end();
  });
  return streams;
}

export function wantsStream(request: FastifyRequest): boolean {
  return request.headers.accept?.includes('text/event-stream') === true;
}

/** Where a client that lost its stream goes on. */
export function resumeAt(request: FastifyRequest, cursor: string | undefined): string | undefined {
  const last = request.headers['last-event-id'];
  return typeof last === 'string' && last !== '' ? last : cursor;
}

/**
 * Server-sent events: everything after the cursor, then what comes, until the run is over (event `end`) or the client
 * leaves. Each has its id, so a client that reconnects misses nothing and sees nothing twice.
 */
export async function streamLive<Item extends { id: number }>(
  request: FastifyRequest,
  reply: FastifyReply,
  cursor: string | undefined,
  { watch, clock, runId, page, isOver, streams }: LiveSource<Item>,
): Promise<void> {
  const first = await page(cursor);
  reply.hijack();
  const { raw } = reply;
  raw.writeHead(200, {
    'content-type': 'text/event-stream; charset=utf-8',
    'cache-control': 'no-store',
    'x-accel-buffering': 'no',
    [HEADERS.requestId]: request.id,
  });
  raw.write(': open\n\n');
  let at = cursor;
  let changed = true;
  let stopped = false;
  let wake: () => void = () => {};
  const look = (): void => {
    changed = true;
    wake();
  };
  const stopWatching = watch.watch(runId, look);
  const stop = (): void => {
    stopped = true;
    look();
  };
  streams.add(stop);
  raw.on('close', look);
  const beat = setInterval(() => raw.write(': alive\n\n'), KEEP_ALIVE_MS).unref();

  /** Writes a page; true when there is another behind it. */
  async function write({ items, nextCursor }: Page<Item>): Promise<boolean> {
    for (const item of items) {
      at = String(item.id);
      const more = raw.write(`id: ${item.id}\ndata: ${JSON.stringify(item)}\n\n`);
      if (!more && !raw.destroyed) await drained(raw);
    }
    // What a filter left out is behind us too: a page may be empty and not the last.
    at = nextCursor ?? at;
    return nextCursor !== null && !raw.destroyed;
  }

  try {
    await write(first);
    while (!raw.destroyed && !stopped) {
      if (!changed)
        await new Promise<void>((resolve) => {
          // A change of another process is seen too.
          const stopTimer = clock.after(1000, resolve);
          wake = () => {
            stopTimer();
            resolve();
          };
        });
      changed = false;
      if (raw.destroyed || stopped) break;
      // Asked before the last page is read: what was written before the end is on it.
      const over = await isOver();
      while (await write(await page(at)));
      if (over) {
        raw.write('event: end\ndata: {}\n\n');
        break;
      }
    }
  } catch (error) {
    raw.write(`event: error\ndata: ${JSON.stringify(errorBody(toPlatformError(error)))}\n\n`);
  } finally {
    clearInterval(beat);
    stopWatching();
    streams.delete(stop);
    raw.end();
  }
}

/** Until there is room again, or nobody reads any more. */
function drained(raw: ServerResponse): Promise<void> {
  return new Promise((resolve) => {
    const go = (): void => {
      raw.off('drain', go).off('close', go);
      resolve();
    };
    raw.on('drain', go).on('close', go);
  });
}
