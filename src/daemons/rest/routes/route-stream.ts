import type { FastifyReply } from 'fastify';
import { createReplyStream, type ReplyStream } from '../../../http/index.ts';
import type { StreamSink } from '../../../plugins/index.ts';

export interface RouteStream extends StreamSink, Pick<ReplyStream, 'started' | 'end' | 'cut'> {}

/**
 * Creates the response of a plugin route whose handler returns a stream. For HEAD requests, `stop` aborts the handler
 * once the headers are sent. @spec docs/plugins.md "Streams"
 */
export function createRouteStream(reply: FastifyReply, stop: AbortController | undefined): RouteStream {
  const stream = createReplyStream(reply);
  return {
    get started() {
      return stream.started;
    },
    start(contentType) {
      stream.start({
        'content-type': contentType,
        'x-accel-buffering': 'no',
        // The sandbox prevents a plugin's page from running with the platform's origin.
        'content-security-policy': "sandbox; default-src 'none'",
        'x-content-type-options': 'nosniff',
      });
      if (!stop) return;
      stream.end();
      stop.abort();
    },
    write: stream.write,
    end: stream.end,
    cut: stream.cut,
  };
}
