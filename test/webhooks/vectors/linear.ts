import { expect } from 'vitest';
import { linear } from '../../../src/webhooks/providers/linear.ts';
import type { Vectors } from './vector.ts';

// Linear's SDK verifies but does not sign. It accepts the delivery before the test uses it.
export const vectors: Vectors = async () => {
  const { LinearWebhookClient } = await import('@linear/sdk/webhooks');
  const { sign } = await import('@octokit/webhooks-methods');
  const secret = 'lin_wh_example_secret';
  const at = Date.now();
  const body = JSON.stringify({ ...JSON.parse(linear.sample.body), webhookTimestamp: at });
  const signature = (await sign(secret, body)).replace('sha256=', '');
  expect(new LinearWebhookClient(secret).verify(Buffer.from(body), signature)).toBe(true);
  return [
    {
      provider: 'linear',
      source: '@linear/sdk@98.0.0, LinearWebhookClient.verify',
      secret,
      at,
      request: { headers: { ...linear.sample.headers, 'linear-signature': signature }, body },
    },
  ];
};
