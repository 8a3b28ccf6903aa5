import { createHmac } from 'node:crypto';
import { expect, test } from 'vitest';
import {
  grantRole,
  listAudit,
  listDeliveries,
  provisionWebhook,
  replayDelivery,
  revokeWebhook,
  trustDelivery,
} from '../../../src/contracts/index.ts';
import { hours } from '../../../src/kit/time/duration.ts';
import {
  ADMIN_TOKEN,
  deliver,
  handlerRuns,
  MEMBER_TOKEN,
  OTHER_TOKEN,
  provision,
  startGateway,
  type TestGateway,
} from '../../support/gateway.ts';
import { describeOnStores } from '../../support/stores.ts';
import { textsIn } from '../../support/texts-in.ts';
import { details, eventually, startSenders } from '../../support/webhook-senders.ts';

const PAYLOAD = { delivery: { id: 'order-1' }, text: 'two socks' };

/** Delivers with a secret that the gateway does not know, and returns the id of the refused delivery. */
async function refused(
  gateway: TestGateway,
  secret = 'their-secret',
  payload: unknown = PAYLOAD,
): Promise<string> {
  const answer = await deliver(gateway, { event: 'created', secret, payload });
  expect(answer.status).toBe(401);
  return answer.headers.get('x-webhook-id')!;
}

const replay = (gateway: TestGateway, webhookId: string, token?: string) =>
  gateway.call(replayDelivery, { params: { webhookId } }, token);
const trust = (gateway: TestGateway, webhookId: string, token?: string) =>
  gateway.call(trustDelivery, { params: { webhookId } }, token);
const takeSecret = (gateway: TestGateway, secret: string) =>
  gateway.call(provisionWebhook, { body: { pluginId: '@acme/orders', event: 'created', secret } as never });

async function succeeded(gateway: TestGateway, webhookId: string): Promise<void> {
  await eventually(async () => expect((await details(gateway, webhookId)).status).toBe('succeeded'));
}

describeOnStores('replay of a refused delivery', (config) => {
  test('a refused delivery runs once after the secret is corrected, and not before', async () => {
    const gateway = await startGateway({ config: await config() });
    await provision(gateway, 'created');
    const id = await refused(gateway);
    const record = await details(gateway, id);
    expect(record).toMatchObject({ body: JSON.stringify(PAYLOAD), status: 'refused' });
    expect(record.replayableUntil).toBe(record.receivedAt + hours(24));
    expect(JSON.stringify(record)).not.toContain('sha256=');

    await expect(replay(gateway, id)).rejects.toMatchObject({
      code: 'CONFLICT',
      message: expect.stringContaining('still not authentic (wrong_secret)'),
    });
    expect(handlerRuns(gateway)).toBe(0);

    await takeSecret(gateway, 'their-secret');
    const [first, second] = await Promise.allSettled([replay(gateway, id), replay(gateway, id)]);
    const done = [first, second].filter((each) => each!.status === 'fulfilled');
    expect(done).toHaveLength(1);
    const { webhookId, replayOf } = (
      done[0] as PromiseFulfilledResult<{ webhookId: string; replayOf: string }>
    ).value;
    expect(replayOf).toBe(id);
    await succeeded(gateway, webhookId);
    const copy = await details(gateway, webhookId);
    expect(copy).toMatchObject({ origin: 'replay', replayOf: id, body: JSON.stringify(PAYLOAD) });
    expect(copy.steps[0]).toMatchObject({ step: 'authentication', outcome: 'ok (current)' });
    expect(await details(gateway, id)).toMatchObject({ replayedBy: webhookId, replayableUntil: null });
    await expect(replay(gateway, id)).rejects.toMatchObject({ message: expect.stringContaining(webhookId) });
    expect(handlerRuns(gateway)).toBe(1);

    // The sender repeats the delivery, which was answered with 401.
    const again = await deliver(gateway, { event: 'created', secret: 'their-secret', payload: PAYLOAD });
    expect(again.body).toEqual({ status: 'duplicate' });
  });

  test('a delivery whose id was handled since is not run again', async () => {
    const gateway = await startGateway({ config: await config() });
    await provision(gateway, 'created');
    const id = await refused(gateway);
    await takeSecret(gateway, 'their-secret');
    expect(
      (await deliver(gateway, { event: 'created', secret: 'their-secret', payload: PAYLOAD })).status,
    ).toBe(200);
    await expect(replay(gateway, id)).rejects.toMatchObject({
      message: expect.stringContaining('a delivery with the same id was handled since'),
    });
    expect(handlerRuns(gateway)).toBe(1);
  });

  test('an administrator can run a delivery that is not authentic, and the audit log says who did', async () => {
    const gateway = await startGateway({ config: await config() });
    await gateway.call(grantRole, {
      body: { subject: 'host:member', role: 'editor', namespaceId: 'default' } as never,
    });
    await provision(gateway, 'created');
    const id = await refused(gateway);
    await expect(trust(gateway, id, MEMBER_TOKEN)).rejects.toMatchObject({ status: 403 });
    await expect(trust(gateway, id, OTHER_TOKEN)).rejects.toMatchObject({ status: 404 });
    await expect(replay(gateway, id, OTHER_TOKEN)).rejects.toMatchObject({ status: 404 });
    const { webhookId } = await trust(gateway, id);
    await succeeded(gateway, webhookId);
    expect((await details(gateway, webhookId)).steps[0]!.outcome).toBe('trusted');
    await expect(trust(gateway, webhookId)).rejects.toMatchObject({ code: 'CONFLICT' });
    const { items } = await gateway.call(listAudit, { query: {} as never }, ADMIN_TOKEN);
    expect(items.filter(({ action }) => action === 'delivery.trust')).toMatchObject([
      { actor: 'operator', object: `delivery:${id}`, outcome: 'succeeded' },
    ]);
  });

  test('a request is stored for 24 hours, and only for a webhook with a secret', async () => {
    const gateway = await startGateway({ config: await config() });
    const unprovisioned = await refused(gateway);
    expect(await details(gateway, unprovisioned)).toMatchObject({ body: null, replayableUntil: null });
    await expect(replay(gateway, unprovisioned)).rejects.toMatchObject({
      message: expect.stringContaining('is not stored'),
    });

    await provision(gateway, 'created');
    const [kept, revoked] = [await refused(gateway), await refused(gateway)];
    gateway.clock.jump(gateway.clock.now() + hours(25));
    await takeSecret(gateway, 'their-secret');
    await expect(replay(gateway, kept)).rejects.toMatchObject({
      message: expect.stringContaining('is not stored'),
    });
    const recent = await refused(gateway, 'other-secret', { delivery: { id: 'order-2' } });
    await gateway.call(revokeWebhook, { params: { pluginId: '@acme/orders', event: 'created' } as never });
    for (const attempt of [replay, trust])
      await expect(attempt(gateway, recent)).rejects.toMatchObject({
        message: expect.stringContaining('has no secret'),
      });
    expect(revoked).not.toBe(kept);
    expect(handlerRuns(gateway)).toBe(0);
  });

  test('large bodies and floods from one network are not stored', async () => {
    const gateway = await startGateway({ config: await config() });
    await provision(gateway, 'created');
    const large = await refused(gateway, 'their-secret', { text: 'x'.repeat(300_000) });
    expect(await details(gateway, large)).toMatchObject({ body: null, replayableUntil: null });
    for (let n = 0; n < 30; n++) await refused(gateway, 'their-secret', { n });
    const { items } = await gateway.call(listDeliveries, { query: { status: 'refused' } as never });
    const records = await Promise.all(items.map(({ webhookId }) => details(gateway, webhookId)));
    expect(records.filter(({ replayableUntil }) => replayableUntil !== null)).toHaveLength(20);
  });
});

test('a signed time is judged as at the receipt: neither an old request nor a late replay changes the verdict', async () => {
  const gateway = await startSenders();
  const provisionStripe = (secret: string) =>
    gateway.call(provisionWebhook, { body: { pluginId: 'senders', event: 'stripe', secret } as never });
  await provisionStripe('whsec_ours');
  const body = '{"n":1}';
  const now = Math.floor(gateway.clock.now() / 1000);
  const sendAt = async (seconds: number): Promise<string> => {
    const digest = createHmac('sha256', 'whsec_theirs').update(`${seconds}.${body}`).digest('hex');
    const headers = { 'stripe-signature': `t=${seconds},v1=${digest}` };
    const answer = await deliver(gateway, { pluginId: 'senders', event: 'stripe', body, headers });
    expect(answer.status).toBe(401);
    return answer.headers.get('x-webhook-id')!;
  };
  const [fresh, captured] = [await sendAt(now), await sendAt(now - 3600)];
  await provisionStripe('whsec_theirs');
  gateway.clock.jump(gateway.clock.now() + hours(2));
  await expect(replay(gateway, captured)).rejects.toMatchObject({
    message: expect.stringContaining('clock_skew'),
  });
  await succeeded(gateway, (await replay(gateway, fresh)).webhookId);
});

test('with keepRefused off nothing is stored, and what is stored is encrypted', async () => {
  const off = await startGateway({ config: { webhooks: { keepRefused: false } } });
  await provision(off, 'created');
  expect(await details(off, await refused(off))).toMatchObject({ body: null, replayableUntil: null });

  const on = await startGateway();
  await provision(on, 'created');
  expect((await details(on, await refused(on))).replayableUntil).not.toBeNull();
  const all = (await textsIn(on.dataDir)).join('');
  expect(all).toContain('refused_request');
  expect(all).not.toContain('two socks');
});
