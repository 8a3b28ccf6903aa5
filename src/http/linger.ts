import type { IncomingMessage, ServerResponse } from 'node:http';

/** Time to discard the rest of a request, so that the client reads the response instead of getting a reset. */
const LINGER_MS = 500;

/**
 * Answers a request that has not fully arrived: writes the complete `body`, then ends the response when the client stops
 * sending or after half a second. Closing a connection with unread bytes would reset it.
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
