import { expect, test } from 'vitest';
import { getWebhookRotation, sendSample } from '../../../src/contracts/index.ts';
import { hours } from '../../../src/kit/time/duration.ts';
import { deliver, OTHER_TOKEN, provision, startGateway } from '../../support/gateway.ts';

const query = { pluginId: '@acme/orders', event: 'plain' } as never;

test('the report of a rotation counts deliveries per secret and sender, without samples', async () => {
  const gateway = await startGateway();
  expect(await gateway.call(getWebhookRotation, { query })).toEqual({
    rotatedAt: null,
    previousExpiresAt: null,
    current: 0,
    previous: 0,
    complete: true,
    senders: [],
  });
  const first = await provision(gateway, 'plain');
  await deliver(gateway, { event: 'plain', secret: first });
  gateway.clock.advance(1000);
  const rotatedAt = gateway.clock.now();
  const second = await provision(gateway, 'plain');
  for (const secret of [first, first, second, 'wrong']) await deliver(gateway, { event: 'plain', secret });
  await gateway.call(sendSample, { body: { ...(query as object), data: {} } as never });

  const report = await gateway.call(getWebhookRotation, { query });
  expect(report).toEqual({
    rotatedAt,
    previousExpiresAt: rotatedAt + hours(24),
    current: 1,
    previous: 2,
    complete: true,
    senders: [
      { source: expect.any(String), current: 1, previous: 2, latest: 'current', latestAt: rotatedAt },
    ],
  });
  const others = await gateway.call(getWebhookRotation, { query }, OTHER_TOKEN);
  expect([others.rotatedAt, others.previous]).toEqual([null, 0]);
});

test('the report of an instance counts its own deliveries, and an unknown webhook is an error', async () => {
  const gateway = await startGateway();
  const shop = { pluginId: '@acme/orders', event: 'shop' };
  const first = await provision(gateway, 'shop', 'eu');
  await provision(gateway, 'shop', 'eu');
  const us = await provision(gateway, 'shop', 'us');
  await deliver(gateway, { event: 'shop', instance: 'eu', secret: first });
  await deliver(gateway, { event: 'shop', instance: 'us', secret: us });
  const of = (instanceId: string) =>
    gateway.call(getWebhookRotation, { query: { ...shop, instanceId } as never });
  expect([(await of('eu')).previous, (await of('us')).current]).toEqual([1, 1]);
  const missing = gateway.call(getWebhookRotation, { query: { ...shop, event: 'none' } as never });
  await expect(missing).rejects.toMatchObject({ code: 'WEBHOOK_NOT_FOUND' });
});
