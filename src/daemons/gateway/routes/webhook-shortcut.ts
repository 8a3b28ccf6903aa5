import type { IncomingMessage, ServerResponse } from 'node:http';
import { HEADERS } from '../../../contracts/index.ts';
import { type Http, takeEarly } from '../../../http/index.ts';
import type { Random } from '../../../kit/random.ts';
import { saneId, spanIdOf, traceIdOf } from '../../../kit/trace.ts';
import { singleHeader } from '../domain/raw-headers.ts';
import type { ArrivedDelivery, createDeliver, TellDelivered } from './deliver.ts';
import { createDeliveryUrls, DELIVERY_PREFIX, type DeliveryUrl } from './webhook-url.ts';

export const DELIVERY_ROUTE = '/webhooks/:pluginId/:event';
export const INSTANCE_ROUTE = '/webhooks/:pluginId/:event/:instanceId';

/**
 * Deliveries written as senders write them go past the framework, whose part was a tenth of what accepting one costs. All
 * others take the route of the same path, which answers the same.
 */
export function takeDeliveriesEarly(http: Http, deliver: ReturnType<typeof createDeliver>): void {
  const { kit } = http;
  const readUrl = createDeliveryUrls();
  const trustsProxies = (kit.trustedProxies?.length ?? 0) > 0;

  const tell: TellDelivered = ({ request, startedAt, incoming }, status, caller) => {
    const { webhookId, instanceId, requestId, traceId } = incoming;
    const route = instanceId === undefined ? DELIVERY_ROUTE : INSTANCE_ROUTE;
    const tenantId = caller?.namespaceId ?? '';
    const ids = { requestId, traceId, spanId: spanIdOf(webhookId), tenantId };
    kit.accountAnswered({ method: 'POST', route, status, startedAt, headers: request.headers, ...ids });
  };

  takeEarly(http, (request, response) => {
    const { method, url, headers } = request;
    if (method !== 'POST' || !url!.startsWith(DELIVERY_PREFIX)) return false;
    // Who the sender is then takes the care that the framework takes.
    if (trustsProxies && headers['x-forwarded-for'] !== undefined) return false;
    // None, or two: refused there.
    if (typeof singleHeader(request.rawHeaders, 'host') !== 'string') return false;
    const target = readUrl(url!);
    if (!target) return false;
    const arrived = arrivedAt(target, request, response, kit.random);
    kit.lastRequestAt = arrived.startedAt;
    deliver(arrived, tell);
    return true;
  });
}

/** One UUID names the delivery and, unless the sender brought ids, its request and its trace: making four costs more than hashing the body. */
function arrivedAt(
  target: DeliveryUrl,
  request: IncomingMessage,
  response: ServerResponse,
  random: Random,
): ArrivedDelivery {
  const { headers, rawHeaders } = request;
  const webhookId = random.uuid();
  const requestId = headers[HEADERS.requestId];
  const hasTrace = headers['x-trace-id'] !== undefined || headers.traceparent !== undefined;
  return {
    request,
    response,
    startedAt: performance.now(),
    incoming: {
      webhookId,
      pluginId: target.pluginId,
      event: target.event,
      instanceId: target.instanceId,
      namespaceInUrl: target.namespaceInUrl,
      rawHeaders,
      source: request.socket.remoteAddress ?? '',
      requestId: requestId === undefined ? webhookId : saneId(requestId, random),
      traceId: hasTrace ? traceIdOf(headers, random) : webhookId.replaceAll('-', ''),
    },
  };
}
