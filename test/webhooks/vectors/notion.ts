import { expect } from 'vitest';
import { notion } from '../../../src/webhooks/providers/notion.ts';
import type { Vectors } from './vector.ts';

export const vectors: Vectors = async () => {
  const { signWebhookPayload, verifyWebhookSignature } = await import('@notionhq/client');
  const secret = 'secret_example_verification_token';
  const { body, headers } = notion.sample;
  const signature = await signWebhookPayload({ body, verificationToken: secret });
  expect(await verifyWebhookSignature({ body, signature, verificationToken: secret })).toBe(true);
  return [
    {
      provider: 'notion',
      source: '@notionhq/client@5.26.0, signWebhookPayload',
      secret,
      request: { headers: { ...headers, 'x-notion-signature': signature }, body },
    },
  ];
};
