import { z } from 'zod';
import { NoFilters, page } from './common.ts';
import { endpoint } from './endpoint.ts';
import { EventName, InstanceId, PluginId } from './ids.ts';

const target = { pluginId: PluginId, event: EventName };
const changeErrors = [
  'VALIDATION_ERROR',
  'UNAUTHORIZED',
  'PLUGIN_NOT_FOUND',
  'WEBHOOK_NOT_FOUND',
  'RATE_LIMIT_EXCEEDED',
] as const;

/** Senders that make the secret themselves and take no other: with one of ours, every delivery would be 401. */
export const SECRET_MAKERS: Readonly<Record<string, string>> = {
  stripe: 'Stripe',
  slack: 'Slack',
  shopify: 'Shopify',
};

/** Creates the secret of a declared webhook, or rotates it. @spec Webhook admin API */
export const provisionWebhook = endpoint({
  method: 'POST',
  path: '/api/v1/webhooks/provision',
  summary: "Create or rotate a webhook's secret; the secret is shown this once",
  tags: ['webhooks'],
  body: z.strictObject({
    ...target,
    instanceId: InstanceId.optional(),
    namespaceInUrl: z
      .boolean()
      .optional()
      .describe('Whether the URL may name the namespace; default: as before, at first not'),
    secret: z
      .string()
      .optional()
      .describe('A secret that the sender made (Stripe, Slack, Shopify); else the gateway makes one'),
    generate: z
      .boolean()
      .optional()
      .describe(
        'Makes a secret in place of one that is provisioned, though the provider makes its own: 409 otherwise',
      ),
  }),
  reply: z.object({
    url: z.string(),
    secret: z.string().describe('Empty when the secret was given: it is never shown again'),
    rotated: z.boolean(),
    requestsPerMinute: z.number().describe('Authentic deliveries that the endpoint takes in a minute'),
  }),
  errors: [...changeErrors, 'CONFLICT'],
});

const ProvisionedState = z.object({
  provisioned: z.boolean(),
  url: z.string(),
  rotatedAt: z.number().nullable().describe('Epoch milliseconds of the last provisioning'),
  previousExpiresAt: z.number().nullable().describe('Until when the former secret is still accepted'),
  previousUsedAt: z.number().nullable().describe('When a sender last used the former secret'),
});

export const WebhookListItem = ProvisionedState.extend({
  ...target,
  multi: z.boolean(),
  paused: z.boolean(),
  unrecorded: z
    .number()
    .describe('Refused, challenge and duplicate requests without a record, counted for a day at most'),
  auth: z.string(),
  provider: z.string().optional(),
  instances: z.array(ProvisionedState.extend({ instanceId: InstanceId, paused: z.boolean() })),
}).meta({ id: 'WebhookListItem' });
export type WebhookListItem = z.infer<typeof WebhookListItem>;

/** @spec Webhook admin API */
export const listWebhooks = endpoint({
  method: 'GET',
  path: '/api/v1/webhooks',
  summary: 'Declared webhooks and whether they are provisioned',
  tags: ['webhooks'],
  query: NoFilters,
  reply: page(WebhookListItem),
  errors: ['UNAUTHORIZED', 'RATE_LIMIT_EXCEEDED'],
});

/** One plugin's webhooks in the tenant's namespace, for the other services of the platform, which show the service key. */
export const listPluginWebhooks = endpoint({
  method: 'GET',
  path: '/internal/plugins/:pluginId/webhooks',
  summary: "A plugin's webhooks, for its own handlers",
  params: z.object({ pluginId: PluginId }),
  reply: z.object({ items: z.array(WebhookListItem) }),
  errors: ['UNAUTHORIZED'],
});

const revokeReply = z.object({ revoked: z.literal(true) });
const revokeErrors = [
  'UNAUTHORIZED',
  'PLUGIN_NOT_FOUND',
  'WEBHOOK_NOT_FOUND',
  'RATE_LIMIT_EXCEEDED',
] as const;

/** @spec Webhook admin API */
export const revokeWebhook = endpoint({
  method: 'DELETE',
  path: '/api/v1/webhooks/:pluginId/:event',
  summary: "Revoke a webhook's secret: deliveries answer 401 from now on",
  tags: ['webhooks'],
  params: z.object(target),
  reply: revokeReply,
  errors: revokeErrors,
});

/** The form for one instance of a `multi` webhook. @spec docs/webhooks.md "What the sender does" */
export const revokeWebhookInstance = endpoint({
  method: 'DELETE',
  path: '/api/v1/webhooks/:pluginId/:event/:instanceId',
  summary: "Revoke the secret of one instance of a 'multi' webhook",
  tags: ['webhooks'],
  params: z.object({ ...target, instanceId: InstanceId }),
  reply: revokeReply,
  errors: revokeErrors,
});

const endpointBody = z.strictObject({ ...target, instanceId: InstanceId.optional() });

/** Async webhooks accept and hold, sync ones answer 503 with Retry-After. Without an instance id: all instances. */
export const pauseWebhook = endpoint({
  method: 'POST',
  path: '/api/v1/webhooks/pause',
  summary: 'Stop calling the handler: async deliveries are held, sync ones answered 503',
  tags: ['webhooks'],
  body: endpointBody,
  reply: z.object({ paused: z.literal(true), holds: z.boolean() }),
  errors: changeErrors,
});

export const resumeWebhook = endpoint({
  method: 'POST',
  path: '/api/v1/webhooks/resume',
  summary: 'Call the handler again, for what was held first',
  tags: ['webhooks'],
  body: endpointBody,
  reply: z.object({ paused: z.literal(false) }),
  errors: changeErrors,
});
