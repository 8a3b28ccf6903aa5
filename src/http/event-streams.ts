import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Caller } from '../contracts/index.ts';
import { errorBody, messageOf, PlatformError, toRemoteError } from '../kit/errors.ts';
import { createFairShares } from '../kit/fair-shares.ts';
import { type WrittenEvent, writtenEvent } from '../kit/server-sent-events.ts';
import { abortedWithCaller, createReplyStream } from './reply-stream.ts';
import type { Http } from './server.ts';

/** Proxies take a silent connection for a dead one, and so does the command line. */
const BEAT_MS = 10_000;
const BEAT = Buffer.from(writtenEvent({ comment: 'still here' }));
const RETRY_AFTER_S = 10;

/** Who asks for a stream, and what it is answered on. */
export interface StreamCall {
  caller: Caller;
  request: FastifyRequest;
  reply: FastifyReply;
}

/**
 * What a stream tells, some events at a time. What it throws before the first of them is answered as an ordinary error.
 * `signal` fires when nobody listens any more.
 */
export type FollowEvents = (signal: AbortSignal) => AsyncGenerator<readonly WrittenEvent[], void>;

export interface EventStreams {
  /**
   * Settles when the stream has ended: by itself, with the connection or with the service; whoever follows one connects anew.
   * A failure in between is its last event, `error`. Throws RATE_LIMIT_EXCEEDED where the caller's namespace has its
   * share of the streams, SERVICE_UNAVAILABLE where there are no more.
   */
  send(call: StreamCall, follow: FollowEvents): Promise<void>;
}

/** Streams of server-sent events that may be open at a time: `count` in all, shared by namespaces. `what` is followed. */
export function createEventStreams(
  http: Http,
  { what, count }: { what: string; count: number },
): EventStreams {
  const shares = createFairShares(count);
  const closing = new AbortController();
  http.addHook('preClose', async () => closing.abort());

  function requirePlace({ namespaceId }: Caller): void {
    if (shares.take(namespaceId)) return;
    const details = { streams: count, retryAfterSeconds: RETRY_AFTER_S };
    const headers = { 'retry-after': String(RETRY_AFTER_S) };
    if (shares.free === 0)
      throw new PlatformError(
        'SERVICE_UNAVAILABLE',
        `All ${count} streams of ${what} are taken; try again in ${RETRY_AFTER_S} s.`,
        { details, headers },
      );
    throw new PlatformError(
      'RATE_LIMIT_EXCEEDED',
      `The namespace "${namespaceId}" has its share of the ${count} streams of ${what}: the rest is kept for others. Close one of its streams, or try again in ${RETRY_AFTER_S} s.`,
      { details: { ...details, namespaceId }, headers },
    );
  }

  return {
    async send(call, follow) {
      requirePlace(call.caller);
      try {
        await send(http, call, follow, closing.signal);
      } finally {
        shares.release(call.caller.namespaceId);
      }
    },
  };
}

async function send(
  http: Http,
  { request, reply }: StreamCall,
  follow: FollowEvents,
  closing: AbortSignal,
): Promise<void> {
  const signal = AbortSignal.any([closing, abortedWithCaller(reply).signal]);
  const source = follow(signal);
  let next = await source.next();
  const { raw } = reply;
  const stream = createReplyStream(reply);
  stream.start({
    'content-type': 'text/event-stream; charset=utf-8',
    'x-accel-buffering': 'no',
    'x-content-type-options': 'nosniff',
  });
  const beat = setInterval(() => raw.writableNeedDrain || raw.write(BEAT), BEAT_MS).unref();
  try {
    while (!next.done && !signal.aborted) {
      // A reader that is slower than we are is waited for, instead of holding what it has not read.
      if (next.value.length > 0) await stream.write(Buffer.from(next.value.map(writtenEvent).join('')));
      next = await source.next();
    }
  } catch (error) {
    if (!signal.aborted && !raw.destroyed) {
      http.kit.logger.warn(`A stream of events ended: ${messageOf(error)}`, { requestId: request.id, error });
      raw.write(writtenEvent({ event: 'error', data: JSON.stringify(errorBody(toRemoteError(error))) }));
    }
  } finally {
    clearInterval(beat);
    await source.return();
    stream.end();
    http.kit.account(request, 200);
  }
}
