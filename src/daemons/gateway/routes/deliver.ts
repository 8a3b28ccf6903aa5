import type { IncomingMessage, ServerResponse } from 'node:http';
import { type Caller, HEADERS } from '../../../contracts/index.ts';
import { continueIfExpected, endUnread, type HttpKit, type PlainExchange } from '../../../http/index.ts';
import type { IncomingDelivery, WebhookDelivery } from '../domain/webhooks/delivery.ts';
import { readBody, requireDeclaredSize } from './read-body.ts';

/** A delivery and the way back to its sender. */
export interface ArrivedDelivery {
  incoming: IncomingDelivery;
  /** `performance.now()` at the request line. */
  startedAt: number;
  exchange: Pick<PlainExchange, 'respond' | 'destroy'>;
}

/** Told once a delivery was answered; there is a caller only when it was authentic. */
export type TellDelivered = (arrived: ArrivedDelivery, status: number, caller: Caller | null) => void;

/** Takes a delivery through the steps and answers it. All ways in end here: as a plain request, past the framework, and through it. */
export function createDeliver(delivery: WebhookDelivery) {
  return (arrived: ArrivedDelivery, tell: TellDelivered): void => {
    const { incoming, exchange } = arrived;
    delivery
      .receive(incoming)
      .then(({ status, headers, body, caller, answered }) => {
        const head = [
          ...['content-type', 'application/json; charset=utf-8'],
          ...[HEADERS.requestId, incoming.requestId, 'x-content-type-options', 'nosniff'],
        ];
        for (const name in headers) head.push(name, headers[name]!);
        try {
          exchange.respond(status, head, JSON.stringify(body), answered);
        } catch (error) {
          answered();
          throw error;
        }
        tell(arrived, status, caller);
      })
      // `receive` answers whatever happens; a connection that cannot take the answer is of no use.
      .catch(() => exchange.destroy());
  };
}

/** The body and the way back of a request that node:http read. */
export function exchangeOf(
  request: IncomingMessage,
  response: ServerResponse,
  kit: Pick<HttpKit, 'draining'>,
): Pick<IncomingDelivery, 'readBody'> & Pick<ArrivedDelivery, 'exchange'> {
  return {
    readBody: (limitBytes) => {
      requireDeclaredSize(request, limitBytes);
      continueIfExpected(request, response);
      return readBody(request, limitBytes);
    },
    exchange: {
      respond(status, headers, text, written) {
        const unread = !request.complete;
        const head = [...headers, 'content-length', String(Buffer.byteLength(text))];
        if (unread || kit.draining) head.push('connection', 'close');
        response.writeHead(status, head);
        if (unread) endUnread(request, response, text);
        else response.end(text);
        if (written) onceWritten(request, response, written);
      },
      destroy: () => request.destroy(),
    },
  };
}

/** Node writes an answer at once, unless earlier requests of the connection are not answered yet: then it has no socket. */
function onceWritten(request: IncomingMessage, response: ServerResponse, written: () => void): void {
  const { socket } = request;
  if (response.socket || socket.destroyed) {
    written();
    return;
  }
  // One for each request that the client pipelined.
  socket.setMaxListeners(0);
  socket.once('close', written);
  response.once('finish', () => {
    socket.off('close', written);
    written();
  });
}
