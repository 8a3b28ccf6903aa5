import { HEADERS } from '../../../contracts/index.ts';
import {
  createClientAddress,
  type Http,
  type HttpKit,
  protocolFault,
  type TakeEarly,
  type TakePlain,
  takeEarly,
  takePlainRequests,
} from '../../../http/index.ts';
import { saneId, spanIdOf, traceIdOf } from '../../../kit/trace.ts';
import { REPEATED, singleHeader } from '../domain/raw-headers.ts';
import { type ArrivedDelivery, type createDeliver, exchangeOf, type TellDelivered } from './deliver.ts';
import { requireSize } from './read-body.ts';
import { createDeliveryUrls, DELIVERY_PREFIX } from './webhook-url.ts';

export const DELIVERY_ROUTE = '/webhooks/:pluginId/:event';
export const INSTANCE_ROUTE = '/webhooks/:pluginId/:event/:instanceId';

/**
 * Deliveries written as senders write them go past node:http and the framework, whose part was a quarter of what accepting
 * one costs; those that node:http has to read go past the framework. All others take the route of the same path, which
 * answers the same.
 */
export function takePlainDeliveries(http: Http, deliver: ReturnType<typeof createDeliver>): void {
  const { kit } = http;
  const read = createReader(kit);

  const tell: TellDelivered = ({ startedAt, incoming }, status, caller) => {
    const { webhookId, instanceId, requestId, traceId, rawHeaders } = incoming;
    kit.accountAnswered({
      method: 'POST',
      route: instanceId === undefined ? DELIVERY_ROUTE : INSTANCE_ROUTE,
      status,
      startedAt,
      requestId,
      traceId,
      spanId: spanIdOf(webhookId),
      tenantId: caller?.namespaceId ?? '',
      traceparent: kit.tracer && singleHeader(rawHeaders, 'traceparent'),
    });
  };
  const take = (arrived: ArrivedDelivery | undefined): boolean => {
    if (!arrived) return false;
    kit.lastRequestAt = arrived.startedAt;
    deliver(arrived, tell);
    return true;
  };

  const takePlain: TakePlain = ({ url, rawHeaders, body }, exchange) =>
    take(
      read(url, rawHeaders, exchange.source, {
        exchange,
        readBody: (limitBytes) => requireSize(body, limitBytes),
      }),
    );
  const takeRead: TakeEarly = (request, response) => {
    const { method, url, rawHeaders, socket } = request;
    if (protocolFault(request)) return false;
    if (method !== 'POST' || !url!.startsWith(DELIVERY_PREFIX)) return false;
    // None, or two: refused there.
    if (typeof singleHeader(rawHeaders, 'host') !== 'string') return false;
    return take(read(url!, rawHeaders, socket.remoteAddress ?? '', exchangeOf(request, response, kit)));
  };
  takePlainRequests(http, { prefix: DELIVERY_PREFIX, take: takePlain });
  takeEarly(http, takeRead);
}

/** How its body is read, and how it is answered. */
type Way = ReturnType<typeof exchangeOf>;
type ReadDelivery = (
  url: string,
  rawHeaders: readonly string[],
  remoteAddress: string,
  way: Way,
) => ArrivedDelivery | undefined;

/** Reads what the head of a delivery says; undefined for what the framework has to look at. */
function createReader({ random, trustedProxies }: HttpKit): ReadDelivery {
  const readUrl = createDeliveryUrls();
  const addressOf = createClientAddress(trustedProxies ?? []);

  return (url, rawHeaders, remoteAddress, { exchange, readBody }) => {
    const target = readUrl(url);
    const forwardedFor = singleHeader(rawHeaders, 'x-forwarded-for');
    if (!target || forwardedFor === REPEATED) return undefined;
    // One UUID names the delivery and, unless the sender brought ids, its request and its trace: making four costs more
    // than hashing the body.
    const webhookId = random.uuid();
    const requestId = sentOnce(rawHeaders, HEADERS.requestId);
    const traceId = sentOnce(rawHeaders, HEADERS.traceId);
    const traceparent = sentOnce(rawHeaders, 'traceparent');
    const hasTrace = traceId !== undefined || traceparent !== undefined;
    return {
      startedAt: performance.now(),
      exchange,
      incoming: {
        webhookId,
        pluginId: target.pluginId,
        event: target.event,
        instanceId: target.instanceId,
        namespaceInUrl: target.namespaceInUrl,
        url,
        rawHeaders,
        source: addressOf(remoteAddress, forwardedFor),
        requestId: requestId === undefined ? webhookId : saneId(requestId, random),
        traceId: hasTrace
          ? traceIdOf({ [HEADERS.traceId]: traceId, traceparent }, random)
          : webhookId.replaceAll('-', ''),
        readBody,
      },
    };
  };
}

/** Sent twice it names nothing, so that a name of ours is made. */
function sentOnce(rawHeaders: readonly string[], name: string): string | undefined {
  const value = singleHeader(rawHeaders, name);
  return typeof value === 'symbol' ? '' : value;
}
