import type { FastifyReply, FastifyRequest } from 'fastify';
import { HEADERS } from '../../../contracts/index.ts';
import { continueIfExpected, type Http } from '../../../http/index.ts';
import { PlatformError } from '../../../kit/errors.ts';
import type { DeliveryAnswer, WebhookDelivery } from '../domain/webhook-delivery.ts';
import { lingerThen, readBody } from './read-body.ts';

type Params = { pluginId: string; event: string; instanceId?: string };
type DeliveryRequest = FastifyRequest<{ Params: Params; Querystring: { namespace?: unknown } }>;

const PATHS = ['/webhooks/:pluginId/:event', '/webhooks/:pluginId/:event/:instanceId'];

/** Where external services deliver: a scope of its own, without Bearer tokens. @spec Webhook delivery; Authentication 10 */
export function webhookDeliveryRoutes(http: Http, { delivery }: { delivery: WebhookDelivery }): void {
  http.register(async (scope) => {
    // Signatures are over the bytes as sent: nothing may read or decode the body before the pipeline does.
    scope.removeAllContentTypeParsers();
    scope.addContentTypeParser('*', (_request, _payload, done) => done(null));
    for (const path of PATHS) {
      scope.route<{ Params: Params; Querystring: { namespace?: unknown } }>({
        method: 'POST',
        url: path,
        // Taken over before Fastify parses, validates and sends: none of it is needed, and all of it costs.
        onRequest: (request, reply) => {
          reply.hijack();
          // `receive` answers whatever happens; a connection that cannot take the answer is of no use.
          deliver(delivery, request, reply).catch(() => request.raw.destroy());
        },
        handler: unreachable,
      });
      scope.route({
        method: ['GET', 'HEAD', 'PUT', 'PATCH', 'DELETE'],
        url: path,
        exposeHeadRoute: false,
        handler: () => {
          throw new PlatformError('METHOD_NOT_ALLOWED', 'Webhooks are delivered with POST.', {
            headers: { allow: 'POST' },
          });
        },
      });
    }
  });
}

function unreachable(): never {
  throw new Error('A webhook delivery is answered before the route handler.');
}

async function deliver(
  delivery: WebhookDelivery,
  request: DeliveryRequest,
  reply: FastifyReply,
): Promise<void> {
  const { raw, params, query } = request;
  const answer = await delivery.receive({
    pluginId: params.pluginId,
    event: params.event,
    instanceId: params.instanceId,
    rawHeaders: raw.rawHeaders,
    namespaceInUrl: typeof query.namespace === 'string' ? query.namespace : undefined,
    source: request.ip,
    requestId: request.id,
    traceId: request.traceId,
    readBody: (limitBytes) => {
      continueIfExpected(raw, reply.raw);
      return readBody(raw, limitBytes);
    },
  });
  request.caller = answer.caller;
  write(request, reply, answer);
}

/** Head and body leave in one write; going through `send` costs a delivery a tenth more. */
function write(
  request: DeliveryRequest,
  reply: FastifyReply,
  { status, body, headers }: DeliveryAnswer,
): void {
  const { raw: response } = reply;
  const text = JSON.stringify(body);
  const unread = !request.raw.complete;
  response.writeHead(status, {
    'content-type': 'application/json; charset=utf-8',
    'content-length': Buffer.byteLength(text),
    [HEADERS.requestId]: request.id,
    ...headers,
    ...(unread ? { connection: 'close' } : {}),
  });
  if (!unread) {
    response.end(text);
    return;
  }
  response.write(text);
  lingerThen(request.raw, () => response.end());
}
