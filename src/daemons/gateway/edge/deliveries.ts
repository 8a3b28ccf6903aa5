import type { IncomingMessage, ServerResponse } from 'node:http';
import { type Caller, HEADERS, SOURCES_PLUGIN_ID } from '../../../contracts/index.ts';
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
import type { SealedHeaders } from '../domain/sources/sealed-headers.ts';
import type { SourceArrivals } from '../domain/sources/source-arrivals.ts';
import { URL_TOKEN_HEADER } from '../domain/sources/source-targets.ts';
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
  sourceArrivals: SourceArrivals;
  sealedHeaders: SealedHeaders;
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
  readonly #arrivals: SourceArrivals;
  readonly #sealedHeaders: SealedHeaders;
  /** Runs at the end of the event loop turn. By then, a body in the same packet as the headers has been read. */
  readonly #receiveSoon = atTurnEnd((arrival: Arrival) => void this.#receive(arrival));
  readonly #answerSoon = atTurnEnd(([arrival, answer]: [Arrival, DeliveryAnswer]) =>
    this.#answer(arrival, answer),
  );

  constructor(kit: HttpKit, { delivery, clientSideOf, sourceArrivals, sealedHeaders }: DeliveriesServices) {
    this.#kit = kit;
    this.#delivery = delivery;
    this.#clientSideOf = clientSideOf;
    this.#arrivals = sourceArrivals;
    this.#sealedHeaders = sealedHeaders;
  }

  serve(request: IncomingMessage, response: ServerResponse, { route, params }: EdgeMatch): void {
    const startedAt = performance.now();
    this.#kit.lastRequestAt = startedAt;
    const incoming =
      route.kind === 'source'
        ? this.#readToSource(request, response, params)
        : this.#read(request, response, params);
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
      method: request.method!,
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

  /**
   * Builds the delivery of a source. The token of the URL becomes a header, which the verification compares and the
   * record masks.
   */
  #readToSource(
    request: IncomingMessage,
    response: ServerResponse,
    { namespaceId, source, token }: EdgeMatch['params'],
  ): IncomingDelivery {
    const read = this.#read(request, response, { pluginId: SOURCES_PLUGIN_ID, event: source! });
    const key = [namespaceId!, source!] as const;
    const rawHeaders = withoutHeader(read.rawHeaders, URL_TOKEN_HEADER);
    return {
      ...read,
      url: maskedUrl(read.url, token),
      namespaceInUrl: namespaceId!,
      rawHeaders: token === undefined ? rawHeaders : [...rawHeaders, URL_TOKEN_HEADER, token],
      toSource: {
        find: () => this.#arrivals.require(namespaceId!, source!, token),
        seal: (recorded) => this.#sealedHeaders.add(recorded, rawHeaders, key),
      },
    };
  }

  #account({ request, route, startedAt, incoming }: Arrival, status: number, caller: Caller | null): void {
    const { webhookId, requestId, traceId } = incoming;
    this.#kit.accountAnswered({
      method: request.method!,
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

/** Returns the request target without the token of the path. */
function maskedUrl(url: string, token: string | undefined): string {
  if (token === undefined) return url;
  const mark = url.indexOf('?');
  const path = mark === -1 ? url : url.slice(0, mark);
  return `${path.slice(0, path.lastIndexOf('/'))}/…${mark === -1 ? '' : url.slice(mark)}`;
}

function withoutHeader(rawHeaders: readonly string[], dropped: string): string[] {
  const kept: string[] = [];
  for (let i = 0; i < rawHeaders.length; i += 2) {
    if (rawHeaders[i]!.toLowerCase() !== dropped) kept.push(rawHeaders[i]!, rawHeaders[i + 1]!);
  }
  return kept;
}
