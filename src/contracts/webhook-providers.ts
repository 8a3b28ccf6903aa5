import { z } from 'zod';
import { NoFilters, page } from './common.ts';
import { endpoint } from './endpoint.ts';
import { PROVIDER_IDS } from './provider-ids.ts';
import { WebhookProtection } from './webhook-admin.ts';

const ProviderIdSchema = z.enum(PROVIDER_IDS);

export const WebhookProvider = z
  .object({
    id: ProviderIdSchema,
    name: z.string().describe('Name as the provider writes it'),
    protects: WebhookProtection,
    secretFrom: z
      .enum(['platform', 'sender', 'either', 'url'])
      .describe('Who generates the secret; `url`: the URL contains it, because the provider signs nothing'),
    secretHelp: z.string().describe('Where the secret is found or entered at the provider'),
    pitfalls: z.array(z.string()).describe('Mistakes that users of the provider make'),
    sendsHeaders: z.boolean().describe('Whether the provider can send the namespace header'),
    verified: z
      .boolean()
      .describe('Whether deliveries were tested that other software than the platform signed'),
  })
  .meta({ id: 'WebhookProvider' });
export type WebhookProvider = z.infer<typeof WebhookProvider>;

export const WebhookProviderDetails = WebhookProvider.extend({
  sources: z.array(z.string()).describe("The provider's pages"),
  checkedOn: z.string().describe('Day of the last comparison with the pages'),
  events: z.array(z.string()).describe('Event types that the provider documents, or the most used of them'),
  ipAllow: z.array(z.string()).describe('Published addresses of the provider'),
  sample: z.object({ headers: z.record(z.string(), z.string()), body: z.string() }),
  unverified: z.string().nullable().describe('Why no such delivery was tested'),
}).meta({ id: 'WebhookProviderDetails' });
export type WebhookProviderDetails = z.infer<typeof WebhookProviderDetails>;

/** Lists the providers whose webhooks can be declared by name. @spec docs/webhooks.md "Signatures" */
export const listWebhookProviders = endpoint({
  method: 'GET',
  path: '/api/v1/webhooks/providers',
  summary: 'List the providers whose webhooks can be declared by name',
  tags: ['webhooks'],
  query: NoFilters,
  reply: page(WebhookProvider),
  errors: ['UNAUTHORIZED', 'RATE_LIMIT_EXCEEDED'],
});

export const getWebhookProvider = endpoint({
  method: 'GET',
  path: '/api/v1/webhooks/providers/:id',
  summary: 'Show a provider of webhooks',
  tags: ['webhooks'],
  params: z.object({ id: ProviderIdSchema }),
  reply: WebhookProviderDetails,
  errors: ['VALIDATION_ERROR', 'UNAUTHORIZED', 'RATE_LIMIT_EXCEEDED'],
});
