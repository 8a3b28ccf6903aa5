import { once } from 'node:events';
import type { FastifyReply } from 'fastify';

/** Status code that nginx logs for requests whose client disconnected. */
export const CLIENT_CLOSED_REQUEST = 499;

export interface ReplyStream {
  readonly started: boolean;
  /** Sends `headers` and the headers already set on the reply. Afterwards, Fastify no longer controls the response. */
  start(headers: Record<string, string>): void;
  /** Writes a chunk, and resolves when the send buffer has room for more. Rejects if the client has disconnected. */
  write(piece: Buffer): Promise<void>;
  end(): void;
  /** Closes the connection abruptly, so that the client detects an incomplete response. */
  cut(): void;
}

/** Creates a stream for a reply. Until `start` is called, an ordinary response can still be sent. */
export function createReplyStream(reply: FastifyReply): ReplyStream {
  let started = false;
  return {
    get started() {
      return started;
    },
    start(headers) {
      started = true;
      const { raw } = reply.hijack();
      raw.writeHead(200, {
        ...(reply.getHeaders() as Record<string, string>),
        'cache-control': 'no-store',
        ...headers,
      });
      raw.flushHeaders();
    },
    async write(piece) {
      const { raw } = reply;
      if (raw.destroyed || raw.writableEnded) throw new Error('the client disconnected');
      if (raw.write(piece)) return;
      const done = new AbortController();
      try {
        await Promise.race([
          once(raw, 'drain', { signal: done.signal }),
          once(raw, 'close', { signal: done.signal }),
        ]);
      } finally {
        done.abort();
      }
      if (raw.destroyed) throw new Error('the client disconnected');
    },
    end: () => void reply.raw.end(),
    cut: () => void reply.raw.destroy(),
  };
}

/** Returns a controller that aborts if the connection closes before the response is complete. */
export function abortOnDisconnect({ raw }: FastifyReply): AbortController {
  const controller = new AbortController();
  raw.once('close', () => {
    if (!raw.writableFinished) controller.abort(new Error('the client disconnected'));
  });
  return controller;
}
