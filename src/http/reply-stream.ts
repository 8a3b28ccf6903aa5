import { once } from 'node:events';
import type { FastifyReply } from 'fastify';

/** What nginx and others log for a caller that left. */
export const CALLER_LEFT = 499;

/** An answer that is written piece by piece. */
export interface ReplyStream {
  readonly started: boolean;
  /** Sends the head with these headers beside those that the reply has. From here on Fastify has no part in it. */
  start(headers: Record<string, string>): void;
  /** Resolves when there is room for more; rejects once the caller has left. */
  write(piece: Buffer): Promise<void>;
  end(): void;
  /** Ends the connection in the middle, so that nobody takes what came for all there is. */
  cut(): void;
}

/** Until it is started it does nothing, and the reply is an ordinary one. */
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

/** Fires when the connection ends before the answer is out: nobody waits for it any more. */
export function abortedWithCaller({ raw }: FastifyReply): AbortController {
  const controller = new AbortController();
  raw.once('close', () => {
    if (!raw.writableFinished) controller.abort(new Error('the caller left'));
  });
  return controller;
}
