import { z } from 'zod';
import { endpoint } from './endpoint.ts';
import { EventName, InstanceId, NamespaceId, PluginId } from './ids.ts';

/**
 * Path to which senders deliver events. For an instance of a `multi` webhook, the instance id is appended. @spec
 * Webhook delivery
 */
const PATH = '/webhooks/:pluginId/:event';

const target = { pluginId: PluginId, event: EventName };

/**
 * Endpoint definition for the API description only. `mount` does not serve this endpoint, because the gateway must run
 * the first checks before reading the body.
 */
const delivery = {
  method: 'POST',
  tags: ['webhooks'],
  headers: z.object({
    'x-svc-namespace': NamespaceId.describe(
      'Namespace of the webhook; part of the URL if provisioned with namespaceInUrl',
    ),
  }),
  query: z.object({
    namespace: NamespaceId.optional().describe('Replaces the header if provisioned with namespaceInUrl'),
  }),
  body: z.json().describe('Event payload, authenticated as declared: by secret, HMAC or validator'),
  reply: z
    .union([
      z.object({ status: z.literal('ok'), webhookId: z.uuid(), result: z.json().optional() }),
      z.object({ status: z.literal('duplicate') }),
      z.object({ challenge: z.json() }),
    ])
    .describe('The handler ran; the delivery is a duplicate; or the echoed challenge'),
  accepted: z.object({ status: z.literal('accepted'), webhookId: z.uuid() }),
  errors: [
    'VALIDATION_ERROR',
    'NAMESPACE_REQUIRED',
    'UNAUTHORIZED',
    'PLUGIN_NOT_FOUND',
    'WEBHOOK_NOT_FOUND',
    'PAYLOAD_TOO_LARGE',
    'UNSUPPORTED_MEDIA_TYPE',
    'RATE_LIMIT_EXCEEDED',
    'EXECUTION_ERROR',
    'SERVICE_UNAVAILABLE',
    'HOST_UNAVAILABLE',
    'EXECUTION_TIMEOUT',
  ],
} as const;

export const deliverWebhook = endpoint({
  ...delivery,
  path: PATH,
  summary: 'Deliver an event to a webhook of a plugin',
  params: z.object(target),
});

export const deliverToInstance = endpoint({
  ...delivery,
  path: `${PATH}/:instanceId`,
  summary: 'Deliver an event to one instance of a `multi` webhook',
  params: z.object({ ...target, instanceId: InstanceId }),
});
