import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import type { Http } from './server.ts';

/** Takes a request and answers it, or says that it did not. */
export type TakeEarly = (request: IncomingMessage, response: ServerResponse) => boolean;

/**
 * Offers each request to `take` before the framework sees it: for a path that is called so often that routing, hooks and
 * the framework's objects are a tenth of its cost. What it leaves goes the usual way, which must serve that path too.
 * Whoever takes a request does what the usual way does for it: ids, `kit.lastRequestAt`, `kit.accountAnswered`,
 * `Connection: close` while draining.
 */
export function takeEarly({ server }: Http, take: TakeEarly): void {
  const listeners = server.listeners('request') as RequestListener[];
  server.removeAllListeners('request');
  server.on('request', (request: IncomingMessage, response: ServerResponse) => {
    if (take(request, response as ServerResponse)) return;
    for (const listener of listeners) listener.call(server, request, response as never);
  });
}
