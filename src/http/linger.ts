import type { IncomingMessage, ServerResponse } from 'node:http';

/** How long what a sender still sends after its answer is thrown away, so that it gets to read the answer instead of a reset. */
const LINGER_MS = 500;

/**
 * Ends an answer that was given before its request had arrived whole: writes `body` at once, which `content-length` says is
 * all of it, and ends the exchange when the sender has stopped or half a second has passed. Ended at once, a connection
 * that is to close would be closed on unread bytes, which resets it.
 */
export function endUnread(request: IncomingMessage, response: ServerResponse, body: string | Buffer): void {
  response.write(body);
  const finish = (): void => {
    clearTimeout(timer);
    request.off('end', finish).off('close', finish);
    response.end();
  };
  const timer = setTimeout(finish, LINGER_MS);
  request.unpipe();
  request.on('end', finish).on('close', finish).resume();
}
