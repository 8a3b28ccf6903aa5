import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Caller } from '../contracts/index.ts';
import { errorBody, messageOf, PlatformError, toRemoteError } from '../kit/errors/errors.ts';
import { createFairShares } from '../kit/limits/fair-shares.ts';
import { type ServerSentEvent, writtenEvent } from '../kit/streams/server-sent-events.ts';
import type { Http } from './http-kit.ts';
import { abortOnDisconnect, createReplyStream } from './reply-stream.ts';

/** Interval of heartbeats. Proxies and the CLI close connections on which no data arrives. */
const HEARTBEAT_MS = 10_000;
const HEARTBEAT = Buffer.from(writtenEvent({ comment: 'heartbeat' }));
const RETRY_AFTER_SECONDS = 10;

export interface StreamCall {
  caller: Caller;
  request: FastifyRequest;
  reply: FastifyReply;
}

/**
 * Yields batches of events. `signal` aborts when the client disconnects. An error before the first batch becomes an
 * error response. A later error becomes an `error` event.
 */
export type FollowEvents = (signal: AbortSignal) => AsyncGenerator<readonly ServerSentEvent[], void>;

export interface EventStreams {
  /**
   * Streams events until the generator ends, the client disconnects or the service stops. Throws RATE_LIMIT_EXCEEDED if
   * the namespace uses all its streams. Throws SERVICE_UNAVAILABLE if no stream is free.
   */
  send(call: StreamCall, follow: FollowEvents): Promise<void>;
}

/**
 * Limits concurrent event streams to `count`, shared fairly between namespaces. `what` names the streamed content in
 * error messages.
 */
export function createEventStreams(
  http: Http,
  { what, count }: { what: string; count: number },
): EventStreams {
  const shares = createFairShares(count);
  const closing = new AbortController();
  http.addHook('preClose', async () => closing.abort());

  function takeSlot({ namespaceId }: Caller): void {
    if (shares.take(namespaceId)) return;
    const details = { streams: count, retryAfterSeconds: RETRY_AFTER_SECONDS };
    const headers = { 'retry-after': String(RETRY_AFTER_SECONDS) };
    if (shares.free === 0)
      throw new PlatformError(
        'SERVICE_UNAVAILABLE',
        `All ${count} streams of ${what} are in use. Try again in ${RETRY_AFTER_SECONDS} s.`,
        { details, headers },
      );
    throw new PlatformError(
      'RATE_LIMIT_EXCEEDED',
      `The namespace "${namespaceId}" has used its share of the ${count} streams of ${what}. Close one of its streams, or try again in ${RETRY_AFTER_SECONDS} s.`,
      { details: { ...details, namespaceId }, headers },
    );
  }

  return {
    async send(call, follow) {
      takeSlot(call.caller);
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
  const signal = AbortSignal.any([closing, abortOnDisconnect(reply).signal]);
  const source = follow(signal);
  let next = await source.next();
  const { raw } = reply;
  const stream = createReplyStream(reply);
  stream.start({
    'content-type': 'text/event-stream; charset=utf-8',
    'x-accel-buffering': 'no',
    'x-content-type-options': 'nosniff',
  });
  const heartbeat = setInterval(() => raw.writableNeedDrain || raw.write(HEARTBEAT), HEARTBEAT_MS).unref();
  try {
    while (!next.done && !signal.aborted) {
      // Applies backpressure by waiting for a slow reader instead of buffering events.
      if (next.value.length > 0) await stream.write(Buffer.from(next.value.map(writtenEvent).join('')));
      next = await source.next();
    }
  } catch (error) {
    if (!signal.aborted && !raw.destroyed) {
      http.kit.logger.warn(`An event stream failed: ${messageOf(error)}`, { requestId: request.id, error });
      raw.write(writtenEvent({ event: 'error', data: JSON.stringify(errorBody(toRemoteError(error))) }));
    }
  } finally {
    clearInterval(heartbeat);
    await source.return();
    stream.end();
    http.kit.account(request, 200);
  }
}
