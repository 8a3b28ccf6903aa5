import { cloudflare } from '../../../src/webhooks/providers/cloudflare.ts';
import type { Vectors } from './vector.ts';

const { headers, body } = cloudflare.sample;

export const vectors: Vectors = async () => [
  {
    provider: 'cloudflare',
    source:
      'https://developers.cloudflare.com/notifications/get-started/configure-webhooks/#generic-webhooks',
    secret: 'my-secret',
    request: { headers: { ...headers, 'cf-webhook-auth': 'my-secret' }, body },
  },
];
