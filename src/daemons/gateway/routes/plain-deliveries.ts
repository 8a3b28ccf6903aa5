import { HEADERS } from '../../../contracts/index.ts';
import {
  createClientAddress,
  type Http,
  type PlainExchange,
  type PlainRequest,
  type TakePlain,
  takePlainRequests,
} from '../../../http/index.ts';
import type { Random } from '../../../kit/random.ts';
import { saneId, spanIdOf, traceIdOf } from '../../../kit/trace.ts';
import { REPEATED, singleHeader } from '../domain/raw-headers.ts';
import type { ArrivedDelivery, createDeliver, TellDelivered } from './deliver.ts';
import { requireSize } from './read-body.ts';
import { createDeliveryUrls, DELIVERY_PREFIX, type DeliveryUrl } from './webhook-url.ts';

export const DELIVERY_ROUTE = '/webhooks/:pluginId/:event';
export const INSTANCE_ROUTE = '/webhooks/:pluginId/:event/:instanceId';

/**
 * Deliveries written as senders write them go past node:http and the framework, whose part was a quarter of what accepting
 * one costs. All others take the route of the same path, which answers the same.
 */
export function takePlainDeliveries(http: Http, deliver: ReturnType<typeof createDeliver>): void {
  const { kit } = http;
  const readUrl = createDeliveryUrls();
  const addressOf = createClientAddress(kit.trustedProxies ?? []);

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

  const take: TakePlain = (request, exchange) => {
    const { url, rawHeaders } = request;
    const target = readUrl(url);
    const forwardedFor = singleHeader(rawHeaders, 'x-forwarded-for');
    if (!target || forwardedFor === REPEATED) return false;
    const source = addressOf(exchange.source, forwardedFor);
    const arrived = arrivedAt(target, request, { exchange, source, random: kit.random });
    kit.lastRequestAt = arrived.startedAt;
    deliver(arrived, tell);
    return true;
  };
  takePlainRequests(http, { prefix: DELIVERY_PREFIX, take });
}

/** One UUID names the delivery and, unless the sender brought ids, its request and its trace: making four costs more than hashing the body. */
function arrivedAt(
  target: DeliveryUrl,
  { rawHeaders, body }: PlainRequest,
  { exchange, source, random }: { exchange: PlainExchange; source: string; random: Random },
): ArrivedDelivery {
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
      rawHeaders,
      source,
      requestId: requestId === undefined ? webhookId : saneId(requestId, random),
      traceId: hasTrace
        ? traceIdOf({ [HEADERS.traceId]: traceId, traceparent }, random)
        : webhookId.replaceAll('-', ''),
      readBody: (limitBytes) => requireSize(body, limitBytes),
    },
  };
}

/** Sent twice it names nothing, so that a name of ours is made. */
function sentOnce(rawHeaders: readonly string[], name: string): string | undefined {
  const value = singleHeader(rawHeaders, name);
  return typeof value === 'symbol' ? '' : value;
}
