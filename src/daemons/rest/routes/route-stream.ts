import { once } from 'node:events';
import type { FastifyReply } from 'fastify';
import type { StreamSink } from '../../../plugins/index.ts';

export interface RouteStream extends StreamSink {
  readonly started: boolean;
  end(): void;
  /** Ends the connection in the middle, so that nobody takes what came for all there is. */
  cut(): void;
}

/**
 * The answer of a route whose handler returned a stream. Until that it does nothing, and the answer is JSON. For a
 * HEAD, `stop` ends the handler once its headers are known. @spec docs/plugins.md "Streams"
 */
export function createRouteStream(reply: FastifyReply, stop: AbortController | undefined): RouteStream {
  let started = false;
  return {
    get started() {
      return started;
    },
    start(contentType) {
      started = true;
      const { raw } = reply.hijack();
      raw.writeHead(200, {
        ...(reply.getHeaders() as Record<string, string>),
        'content-type': contentType,
        'cache-control': 'no-store',
        'x-accel-buffering': 'no',
        // A plugin's page must not act in the name of the platform's address.
        'content-security-policy': "sandbox; default-src 'none'",
        'x-content-type-options': 'nosniff',
      });
      raw.flushHeaders();
      if (!stop) return;
      raw.end();
      stop.abort();
    },
    async write(piece) {
      const { raw } = reply;
      if (raw.destroyed || raw.writableEnded) throw new Error('the caller left');
      if (raw.write(piece)) return;
      // One of the two comes: room, or the end of the connection.
      const done = new AbortController();
      try {
        await Promise.race([
          once(raw, 'drain', { signal: done.signal }),
          once(raw, 'close', { signal: done.signal }),
        ]);
      } finally {
        done.abort();
      }
      if (raw.destroyed) throw new Error('the caller left');
    },
    end: () => void reply.raw.end(),
    cut: () => void reply.raw.destroy(),
  };
}
