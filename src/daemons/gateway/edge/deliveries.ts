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
import { atTurnEnd } from '../../../kit/time/turn-end.ts';
import type {
  DeliveryAnswer,
  IncomingDelivery,
  WebhookDelivery,
} from '../domain/webhooks/receive/delivery.ts';
import { answerDelivery } from './delivery-answer.ts';
import { readBody, requireDeclaredSize } from './read-body.ts';
import type { EdgeMatch } from './router.ts';

export interface DeliveriesServices {
  delivery: WebhookDelivery;
  clientSideOf: ClientSideOf;
}

/** A webhook delivery that is being received. */
interface Arrival {
  request: IncomingMessage;
  response: ServerResponse;
  /** Pattern of the matched route. */
  route: string;
  /** Value of `performance.now()` when the request line arrived. */
  startedAt: number;
  incoming: IncomingDelivery;
}

/**
 * Receives webhook deliveries, which are authenticated by their signature instead of a Bearer token. @spec Webhook
 * delivery; Authentication 10
 */
export class Deliveries {
  readonly #kit: HttpKit;
  readonly #delivery: WebhookDelivery;
  readonly #clientSideOf: ClientSideOf;
  /** Runs at the end of the event loop turn. By then, a body in the same packet as the headers has been read. */
  readonly #receiveSoon = atTurnEnd((arrival: Arrival) => void this.#receive(arrival));
  readonly #answerSoon = atTurnEnd(([arrival, answer]: [Arrival, DeliveryAnswer]) =>
    this.#answer(arrival, answer),
  );

  constructor(kit: HttpKit, { delivery, clientSideOf }: DeliveriesServices) {
    this.#kit = kit;
    this.#delivery = delivery;
    this.#clientSideOf = clientSideOf;
  }

  serve(request: IncomingMessage, response: ServerResponse, { route, params }: EdgeMatch): void {
    const startedAt = performance.now();
    this.#kit.lastRequestAt = startedAt;
    const incoming = this.#read(request, response, params);
    this.#receiveSoon({ request, response, route: route.pattern, startedAt, incoming });
  }

  /** Processes a delivery and sends the response. Never rejects. */
  async #receive(arrival: Arrival): Promise<void> {
    try {
      requireValidRequest(arrival.request, this.#kit.checkHost);
    } catch (error) {
      this.#refuse(arrival, error);
      return;
    }
    this.#answerSoon([arrival, await this.#delivery.receive(arrival.incoming)]);
  }

  #answer(arrival: Arrival, answer: DeliveryAnswer): void {
    const { request, response, incoming } = arrival;
    try {
      answerDelivery(request, response, answer, incoming.requestId, this.#kit.draining);
    } catch {
      // The connection cannot be reused without a valid response.
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
   * Builds the delivery from the request line and headers. A missing request id or trace id is derived from the webhook
   * id, because generating another UUID is slow.
   */
  #read(request: IncomingMessage, response: ServerResponse, params: EdgeMatch['params']): IncomingDelivery {
    const { random } = this.#kit;
    const { headers } = request;
    const webhookId = random.uuid();
    const client = this.#clientSideOf(request);
    const hasTrace = headers[HEADERS.traceId] !== undefined || headers.traceparent !== undefined;
    return {
      webhookId,
      pluginId: params.pluginId!,
      event: params.event!,
      instanceId: params.instanceId,
      namespaceInUrl: namespaceIn(request.url!),
      url: request.url!,
      rawHeaders: request.rawHeaders,
      source: client.ip,
      calledAs: client,
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

/** Returns the `namespace` query parameter, or undefined if the parameter is missing or repeated. */
function namespaceIn(url: string): string | undefined {
  const mark = url.indexOf('?');
  if (mark === -1) return undefined;
  const named = new URLSearchParams(url.slice(mark + 1)).getAll('namespace');
  return named.length === 1 ? named[0] : undefined;
}
