import type { IncomingMessage, ServerResponse } from 'node:http';
import { type Caller, HEADERS } from '../../../contracts/index.ts';
import { continueIfExpected, endUnread, type HttpKit } from '../../../http/index.ts';
import type { DeliveryAnswer, IncomingDelivery, WebhookDelivery } from '../domain/webhooks/delivery.ts';
import { readBody } from './read-body.ts';

/** A delivery with the connection that it came on. */
export interface ArrivedDelivery {
  request: IncomingMessage;
  response: ServerResponse;
  /** `performance.now()` at the request line. */
  startedAt: number;
  incoming: Omit<IncomingDelivery, 'readBody'>;
}

/** Told once a delivery was answered; there is a caller only when it was authentic. */
export type TellDelivered = (arrived: ArrivedDelivery, status: number, caller: Caller | null) => void;

/** Takes a delivery through the steps and answers it. Both ways in end here: past the framework, and through it. */
export function createDeliver(delivery: WebhookDelivery, kit: Pick<HttpKit, 'draining'>) {
  return (arrived: ArrivedDelivery, tell: TellDelivered): void => {
    const { request, response, incoming } = arrived;
    const readThis = (limitBytes: number): Promise<Buffer> => {
      continueIfExpected(request, response);
      return readBody(request, limitBytes);
    };
    delivery
      .receive({ ...incoming, readBody: readThis })
      .then((answer) => {
        write(arrived, answer, kit.draining);
        tell(arrived, answer.status, answer.caller);
      })
      // `receive` answers whatever happens; a connection that cannot take the answer is of no use.
      .catch(() => request.destroy());
  };
}

/** One `writeHead` of flat pairs, and text as latin1 where it can be: then head and body leave in one write without a copy. */
function write(
  { request, response, incoming }: ArrivedDelivery,
  { status, body, headers }: DeliveryAnswer,
  draining: boolean,
): void {
  const text = JSON.stringify(body);
  const bytes = Buffer.byteLength(text);
  const unread = !request.complete;
  const head = [
    ...['content-type', 'application/json; charset=utf-8', 'content-length', String(bytes)],
    ...[HEADERS.requestId, incoming.requestId, 'x-content-type-options', 'nosniff'],
  ];
  for (const name in headers) head.push(name, headers[name]!);
  if (unread || draining) head.push('connection', 'close');
  response.writeHead(status, head);
  if (!unread) {
    response.end(text, bytes === text.length ? 'latin1' : 'utf8');
    return;
  }
  endUnread(request, response, text);
}
