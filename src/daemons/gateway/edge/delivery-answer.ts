import type { IncomingMessage, ServerResponse } from 'node:http';
import { HEADERS } from '../../../contracts/index.ts';
import { endUnread } from '../../../http/index.ts';
import type { DeliveryAnswer } from '../domain/webhooks/receive/delivery.ts';

/**
 * Sends the response to a webhook delivery. Calls `answered` once the response is written or the connection is closed.
 * Throws if a header is invalid.
 */
export function answerDelivery(
  request: IncomingMessage,
  response: ServerResponse,
  { status, headers, body, content, answered }: DeliveryAnswer,
  requestId: string,
  isDraining: boolean,
): void {
  const data = content ? content.data : JSON.stringify(body);
  const type = content ? content.type : 'application/json; charset=utf-8';
  const bytes = Buffer.byteLength(data);
  const head = [
    ...(type === undefined ? [] : ['content-type', type]),
    // RFC 9110, section 8.6: a 204 response has no content-length.
    ...(status === 204 ? [] : ['content-length', String(bytes)]),
    ...[HEADERS.requestId, requestId, 'x-content-type-options', 'nosniff'],
    // Keeps the answers of handlers from running on the origin of the studio.
    ...['content-security-policy', 'sandbox'],
  ];
  for (const name in headers) head.push(name, headers[name]!);
  const isUnread = !request.complete;
  if (isUnread || isDraining) head.push('connection', 'close');
  response.writeHead(status, head);
  if (isUnread) endUnread(request, response, typeof data === 'string' ? data : data.toString('latin1'));
  else if (typeof data !== 'string') response.end(data);
  // ASCII text is sent as latin1. For latin1 text, Node sends headers and body in one write.
  else response.end(data, bytes === data.length ? 'latin1' : 'utf8');
  onceWritten(request, response, answered);
}

/**
 * Calls `written` once the response is written to the socket or the socket is closed. A pipelined response has no
 * socket until the earlier responses are sent.
 */
function onceWritten(request: IncomingMessage, response: ServerResponse, written: () => void): void {
  const { socket } = request;
  if (response.socket || socket.destroyed) {
    written();
    return;
  }
  // Disables Node's warning about many listeners, because each pipelined request adds a listener.
  socket.setMaxListeners(0);
  socket.once('close', written);
  response.once('finish', () => {
    socket.off('close', written);
    written();
  });
}
