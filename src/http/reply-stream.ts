import { once } from 'node:events';
import type { FastifyReply } from 'fastify';

/** Status logged when the client disconnects (nginx convention). */
export const CLIENT_CLOSED_REQUEST = 499;

/** A response written in chunks. */
export interface ReplyStream {
  readonly started: boolean;
  /** Sends these headers and those of the reply, and takes the response from Fastify. */
  start(headers: Record<string, string>): void;
  /** Resolves when there is room for more; rejects after the client disconnects. */
  write(piece: Buffer): Promise<void>;
  end(): void;
  /** Closes the connection abruptly, so that the client detects an incomplete response. */
  cut(): void;
}

/** Creates a stream for a reply. Before `start` it has no effect, and the reply stays an ordinary one. */
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
      // Either the buffer drains or the connection closes.
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

/** Aborts when the connection closes before the response is complete. */
export function abortOnDisconnect({ raw }: FastifyReply): AbortController {
  const controller = new AbortController();
  raw.once('close', () => {
    if (!raw.writableFinished) controller.abort(new Error('the client disconnected'));
  });
  return controller;
}
