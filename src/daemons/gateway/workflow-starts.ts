import { type DeliveredEvent, HEADERS, listTriggers, startByDelivery } from '../../contracts/index.ts';
import { createClient, serviceHeaders } from '../../http/index.ts';
import { traceparent } from '../../kit/telemetry/trace.ts';
import type { GatewayStore, NewDelivery } from '../../store/ports/index.ts';
import type { Resources } from '../define-daemon.ts';
import { deliverySpan } from './domain/webhooks/dispatch/delivery-span.ts';
import type { CallHandler } from './domain/webhooks/dispatch/handler-call.ts';
import { startingWorkflows } from './domain/webhooks/dispatch/workflow-starts.ts';
import { createWebhookTriggers } from './domain/webhooks/dispatch/workflow-triggers.ts';

const LIST_TIMEOUT_MS = 2000;
const START_TIMEOUT_MS = 5000;

export interface StartingCall {
  call: CallHandler;
  /** Invalidates the cached list of webhooks that start workflows. */
  forgetTriggers: () => Promise<void>;
}

/** Wraps the handler call so that the workflows registered for a webhook start after the webhook's handler. */
export function withWorkflows(
  call: CallHandler,
  { peers, keys, clock, logger }: Resources,
  { cache }: Pick<GatewayStore, 'cache'>,
): StartingCall {
  const client = createClient({ url: () => peers.urlOf('workflow'), peer: 'workflow service' });

  function headersOf(pluginId: string, namespaceId: string): Record<string, string> {
    return serviceHeaders(keys.internalSecret, { hostId: `webhook:${pluginId}`, namespaceId });
  }

  async function list() {
    const options = { headers: headersOf('gateway', 'default'), timeoutMs: LIST_TIMEOUT_MS };
    return (await client.call(listTriggers, {}, options)).items;
  }

  function start(delivery: NewDelivery, body: DeliveredEvent) {
    const { pluginId, namespaceId, requestId, traceId } = delivery;
    const spanId = deliverySpan(delivery);
    const headers = {
      ...(spanId === undefined ? {} : { traceparent: traceparent(traceId, spanId) }),
      ...headersOf(pluginId, namespaceId),
      [HEADERS.requestId]: requestId,
      [HEADERS.traceId]: traceId,
    };
    return client.call(startByDelivery, { body }, { headers, timeoutMs: START_TIMEOUT_MS });
  }

  const triggers = createWebhookTriggers({
    list: () => (peers.known().workflow === undefined ? undefined : list()),
    cache,
    clock,
    logger,
  });
  return { call: startingWorkflows(call, { triggers, start, logger }), forgetTriggers: triggers.forget };
}
