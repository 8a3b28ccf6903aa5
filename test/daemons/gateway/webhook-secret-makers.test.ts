import { expect, test } from 'vitest';
import { provisionWebhook } from '../../../src/contracts/index.ts';
import type { TestGateway } from '../../support/gateway.ts';
import { startSenders } from '../../support/webhook-senders.ts';

const provision = (gateway: TestGateway, event: string, more: object = {}) =>
  gateway.call(provisionWebhook, { body: { pluginId: 'senders', event, ...more } as never });

test.each(['stripe', 'slack', 'shopify'])(
  'a secret made by %s is replaced by another of the sender, or by a generated one on demand',
  async (event) => {
    const gateway = await startSenders();
    const given = { secret: 'made-by-the-provider' };
    expect(await provision(gateway, event, given)).toMatchObject({ secret: '', rotated: false });
    for (const more of [{}, { generate: false }, { namespaceInUrl: true }])
      await expect(provision(gateway, event, more)).rejects.toMatchObject({
        code: 'CONFLICT',
        status: 409,
        details: { hint: expect.stringMatching(/--secret-stdin.*--generate/) },
      });
    expect(await provision(gateway, event, { secret: 'its-next-secret' })).toMatchObject({ rotated: true });
    const made = await provision(gateway, event, { generate: true });
    expect([made.rotated, made.secret.length]).toEqual([true, 43]);
  },
);

test('the first secret, and those of senders that accept ours, need no flag; the reply states the limit', async () => {
  const gateway = await startSenders();
  expect(await provision(gateway, 'stripe')).toMatchObject({ rotated: false, requestsPerMinute: 100_000 });
  expect((await provision(gateway, 'github')).rotated).toBe(false);
  expect((await provision(gateway, 'github')).rotated).toBe(true);
});
