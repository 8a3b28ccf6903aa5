import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Http } from '../../../http/index.ts';
import { spanIdOf } from '../../../kit/trace.ts';
import type { WebhookDelivery } from '../domain/webhooks/delivery.ts';
import { type ArrivedDelivery, createDeliver, exchangeOf } from './deliver.ts';
import { DELIVERY_ROUTE, INSTANCE_ROUTE, takePlainDeliveries } from './plain-deliveries.ts';

type Params = { pluginId: string; event: string; instanceId?: string };
type Delivering = { Params: Params; Querystring: { namespace?: unknown } };

/** Where external services deliver: a scope of its own, without Bearer tokens. @spec Webhook delivery; Authentication 10 */
export function webhookDeliveryRoutes(http: Http, { delivery }: { delivery: WebhookDelivery }): void {
  const deliver = createDeliver(delivery);
  takePlainDeliveries(http, deliver);
  http.register(async (scope) => {
    // Signatures are over the bytes as sent: nothing may read or decode the body before the pipeline does.
    scope.removeAllContentTypeParsers();
    scope.addContentTypeParser('*', (_request, _payload, done) => done(null));
    for (const path of [DELIVERY_ROUTE, INSTANCE_ROUTE]) {
      scope.route<Delivering>({
        method: 'POST',
        url: path,
        config: { accountsItself: true },
        // Taken over before Fastify parses, validates and sends: none of it is needed, and all of it costs.
        onRequest: (request, reply) => {
          reply.hijack();
          const webhookId = http.kit.random.uuid();
          // Whatever is done about the delivery finds its span by its id.
          request.spanId = spanIdOf(webhookId);
          deliver(arrivedThrough(http, request, reply, webhookId), (_arrived, status, caller) => {
            request.caller = caller;
            http.kit.account(request, status);
          });
        },
        handler: unreachable,
      });
    }
  });
}

function arrivedThrough(
  { kit }: Http,
  request: FastifyRequest<Delivering>,
  { raw: response }: FastifyReply,
  webhookId: string,
): ArrivedDelivery {
  const { raw, params, query } = request;
  const { readBody, exchange } = exchangeOf(raw, response, kit);
  return {
    startedAt: request.startedAt,
    exchange,
    incoming: {
      webhookId,
      pluginId: params.pluginId,
      event: params.event,
      instanceId: params.instanceId,
      url: raw.url!,
      rawHeaders: raw.rawHeaders,
      namespaceInUrl: typeof query.namespace === 'string' ? query.namespace : undefined,
      source: request.ip,
      requestId: request.id,
      traceId: request.traceId,
      readBody,
    },
  };
}

function unreachable(): never {
  throw new Error('A webhook delivery is answered before the route handler.');
}
