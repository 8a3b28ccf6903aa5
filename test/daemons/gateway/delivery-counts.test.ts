import { expect, test } from 'vitest';
import { countDeliveries, listDeliveries, pauseWebhook } from '../../../src/contracts/index.ts';
import { days, hours } from '../../../src/kit/time/duration.ts';
import { describeOnStores } from '../../support/stores.ts';
import { secretOf, send, startSenders } from '../../support/webhook-senders.ts';

const HOUR = hours(1);
describeOnStores('counts of deliveries', (config) => {
  test('deliveries are counted per hour with failures and refusals, and listed up to a time', async () => {
    const gateway = await startSenders({ config: await config() });
    const secret = await secretOf(gateway, 'sync');
    await send(gateway, 'sync', secret, { id: 1 });
    await send(gateway, 'sync', secret, { id: 2, n: 'f', failTimes: 1 });
    await send(gateway, 'sync', `${secret}x`, { id: 3 });
    const { items, totals } = await gateway.call(countDeliveries, {});
    expect(items).toHaveLength(24);
    expect(totals).toEqual({ total: 3, open: 0, succeeded: 1, failed: 1, unhandled: 1 });
    const [busy] = items.filter(({ total }) => total > 0);
    expect(busy!.hour % HOUR).toBe(0);

    const listed = await gateway.call(listDeliveries, {});
    const last = listed.items[0]!.receivedAt;
    const until = await gateway.call(listDeliveries, { query: { until: last + 1, limit: 2 } });
    expect(until.items).toEqual(listed.items.slice(0, 2));
    expect((await gateway.call(listDeliveries, { query: { until: busy!.hour } })).items).toEqual([]);
    await expect(
      gateway.call(countDeliveries, { query: { from: last, to: last - HOUR } }),
    ).rejects.toMatchObject({ code: 'VALIDATION_ERROR' });
    const ended = await gateway.call(listDeliveries, { query: { status: ['succeeded', 'failed'] } });
    expect(ended.items.map(({ status }) => status)).toEqual(['failed', 'succeeded']);
  });

  test('deliveries that wait for days are unfinished, whatever range is counted', async () => {
    const gateway = await startSenders({ config: await config() });
    const secret = await secretOf(gateway, 'queued');
    await gateway.call(pauseWebhook, { body: { pluginId: 'senders', event: 'queued' } as never });
    for (const id of [1, 2]) await send(gateway, 'queued', secret, { id });
    gateway.clock.jump(gateway.clock.now() + days(3));
    const { totals, unfinished } = await gateway.call(countDeliveries, {});
    expect([totals.open, unfinished]).toEqual([0, 2]);
  });
});
