import type { IncomingMessage, ServerResponse } from 'node:http';
import { type Caller, HEADERS } from '../../../contracts/index.ts';
import {
  type ClientSideOf,
  continueIfExpected,
  type HttpKit,
  requireValidRequest,
  sendRawError,
} from '../../../http/index.ts';
import { toPlatformError } from '../../../kit/errors/errors.ts';
import { saneId, spanIdOf, traceIdOf } from '../../../kit/telemetry/trace.ts';
import type { IncomingDelivery, WebhookDelivery } from '../domain/webhooks/receive/delivery.ts';
import { answerDelivery } from './delivery-answer.ts';
import { readBody, requireDeclaredSize } from './read-body.ts';
import type { EdgeMatch } from './router.ts';

export interface DeliveriesServices {
  delivery: WebhookDelivery;
  clientSideOf: ClientSideOf;
}

/** One delivery and the way back to its sender. */
interface Arrival {
  request: IncomingMessage;
  response: ServerResponse;
  /** The pattern that its path matched. */
  route: string;
  /** `performance.now()` at the request line. */
  startedAt: number;
  incoming: IncomingDelivery;
}

/** Where external services deliver, without Bearer tokens. @spec Webhook delivery; Authentication 10 */
export class Deliveries {
  readonly #kit: HttpKit;
  readonly #delivery: WebhookDelivery;
  readonly #clientSideOf: ClientSideOf;

  constructor(kit: HttpKit, { delivery, clientSideOf }: DeliveriesServices) {
    this.#kit = kit;
    this.#delivery = delivery;
    this.#clientSideOf = clientSideOf;
  }

  serve(request: IncomingMessage, response: ServerResponse, { route, params }: EdgeMatch): void {
    const startedAt = performance.now();
    this.#kit.lastRequestAt = startedAt;
    const incoming = this.#read(request, response, params);
    const arrival = { request, response, route: route.pattern, startedAt, incoming };
    try {
      requireValidRequest(request, this.#kit.checkHost);
    } catch (error) {
      this.#refuse(arrival, error);
      return;
    }
    void this.#receive(arrival);
  }

  /** `receive` never rejects; a connection that cannot take the answer is of no use. */
  async #receive(arrival: Arrival): Promise<void> {
    const { request, response, incoming } = arrival;
    const answer = await this.#delivery.receive(incoming);
    try {
      answerDelivery(request, response, answer, incoming.requestId, this.#kit.draining);
    } catch {
      answer.answered();
      request.destroy();
      return;
    }
    this.#account(arrival, answer.status, answer.caller);
  }

  #refuse(arrival: Arrival, thrown: unknown): void {
    const error = toPlatformError(thrown);
    sendRawError(arrival.response, error, arrival.incoming.requestId, null, this.#kit.draining);
    this.#account(arrival, error.status, null);
  }

  /**
   * What the head says. One UUID names the delivery and, unless the sender brought ids, its request and its trace: making
   * four costs more than hashing the body.
   */
  #read(request: IncomingMessage, response: ServerResponse, params: EdgeMatch['params']): IncomingDelivery {
    const { random } = this.#kit;
    const { headers } = request;
    const webhookId = random.uuid();
    const hasTrace = headers[HEADERS.traceId] !== undefined || headers.traceparent !== undefined;
    return {
      webhookId,
      pluginId: params.pluginId!,
      event: params.event!,
      instanceId: params.instanceId,
      namespaceInUrl: namespaceIn(request.url!),
      url: request.url!,
      rawHeaders: request.rawHeaders,
      source: this.#clientSideOf(request).ip,
      requestId:
        headers[HEADERS.requestId] === undefined ? webhookId : saneId(headers[HEADERS.requestId], random),
      traceId: hasTrace ? traceIdOf(headers, random) : webhookId.replaceAll('-', ''),
      readBody: (limitBytes) => {
        requireDeclaredSize(request, limitBytes);
        continueIfExpected(request, response);
        return readBody(request, limitBytes);
      },
    };
  }

  #account({ request, route, startedAt, incoming }: Arrival, status: number, caller: Caller | null): void {
    const { webhookId, requestId, traceId } = incoming;
    this.#kit.accountAnswered({
      method: 'POST',
      route,
      status,
      startedAt,
      requestId,
      traceId,
      spanId: spanIdOf(webhookId),
      tenantId: caller?.namespaceId ?? '',
      traceparent: request.headers.traceparent,
    });
  }
}

/** `?namespace=`; given twice, it is none. */
function namespaceIn(url: string): string | undefined {
  const mark = url.indexOf('?');
  if (mark === -1) return undefined;
  const named = new URLSearchParams(url.slice(mark + 1)).getAll('namespace');
  return named.length === 1 ? named[0] : undefined;
}
