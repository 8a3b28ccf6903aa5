import type { IncomingMessage, ServerResponse } from 'node:http';

/** Maximum time to read and discard the rest of a request after an early response. */
const LINGER_MS = 500;

/**
 * Responds to a request that has not fully arrived, and discards the remaining bytes. If the connection closed with
 * unread bytes, a reset could make the client lose the response.
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
