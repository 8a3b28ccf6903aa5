import { connect } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { getDelivery } from '../../../src/contracts/index.ts';
import { seconds } from '../../../src/kit/time/duration.ts';
import {
  type Delivery,
  deliver,
  handlerRuns,
  OTHER_TOKEN,
  provision,
  startGateway,
  type TestGateway,
} from '../../support/gateway.ts';
import { eventually } from '../../support/webhook-senders.ts';

const AT_ONCE = 20;
const CHALLENGE = { type: 'url_verification', challenge: 'abc' };

async function statusesOf(gateway: TestGateway, count: number, delivery: Delivery): Promise<number[]> {
  const seen = new Set<number>();
  for (let left = count; left > 0; left -= AT_ONCE) {
    const batch = Array.from({ length: Math.min(left, AT_ONCE) }, () => statusOf(gateway, delivery));
    for (const status of await Promise.all(batch)) seen.add(status);
  }
  return [...seen];
}

const statusOf = async (gateway: TestGateway, delivery: Delivery) =>
  (await deliver(gateway, delivery)).status;

test('unsigned requests do not use the budget of the endpoint: a signed delivery is accepted after any number', async () => {
  const gateway = await startGateway();
  const secret = await provision(gateway, 'plain');
  expect(await statusesOf(gateway, 120, { event: 'plain' })).toEqual([401]);
  expect(await statusesOf(gateway, 30, { event: 'plain', secret: 'wrong' })).toEqual([429]);
  // All that the endpoint takes in a minute, from the same address.
  expect(await statusesOf(gateway, 60, { event: 'plain', secret })).toEqual([200]);
  const refused = await deliver(gateway, { event: 'plain', secret });
  expect([refused.status, refused.headers.get('retry-after')]).toEqual([429, '60']);
});

test('challenges and known ids hold no permit, and answer 429 once the budget of the address is used up', async () => {
  const gateway = await startGateway();
  const challenged = await provision(gateway, 'challenged');
  const challenge = { event: 'challenged', payload: CHALLENGE };
  expect(await statusesOf(gateway, 120, challenge)).toEqual([200]);
  expect(await statusesOf(gateway, 5, challenge)).toEqual([429]);
  // A signed one proves itself, as one from an address with a budget need not.
  expect(await statusOf(gateway, { ...challenge, secret: challenged })).toBe(200);
  expect(await statusesOf(gateway, 60, { event: 'challenged', secret: challenged })).toEqual([200]);

  const secret = await provision(gateway, 'created');
  const known = { event: 'created', payload: { delivery: { id: 'known' } } };
  expect(await statusOf(gateway, { ...known, secret })).toBe(200);
  expect(await statusOf(gateway, known)).toBe(429);
  const duplicate = await deliver(gateway, { ...known, secret });
  expect([duplicate.status, duplicate.body]).toEqual([200, { status: 'duplicate' }]);
  expect(handlerRuns(gateway)).toBe(61);
});

test('a known id is a duplicate for every sender, is checked for authenticity, and charged to its address', async () => {
  const gateway = await startGateway();
  const secret = await provision(gateway, 'created');
  const known = { event: 'created', payload: { delivery: { id: 'known' } } };
  expect((await deliver(gateway, { ...known, secret })).body.status).toBe('ok');
  const authentications: unknown[] = [];
  for (const signed of [{}, { secret: 'wrong' }, { secret }]) {
    const { status, body, headers } = await deliver(gateway, { ...known, ...signed });
    expect([status, body]).toEqual([200, { status: 'duplicate' }]);
    const record = await gateway.call(getDelivery, {
      params: { webhookId: headers.get('x-webhook-id')! as never },
    });
    authentications.push(record.steps.find(({ step }) => step === 'authentication')?.outcome);
  }
  expect(authentications).toEqual(['header_missing', 'mismatch', 'ok (current)']);
  // Three of the budget's 120 are used.
  expect(await statusesOf(gateway, 117, known)).toEqual([200]);
  expect(await statusOf(gateway, known)).toBe(429);
  expect(handlerRuns(gateway)).toBe(1);
});

test('a validator also checks a known id, without effect on the answer', async () => {
  const gateway = await startGateway();
  const secret = await provision(gateway, 'checked');
  const known = { event: 'checked', payload: { delivery: { id: 'known' } } };
  expect((await deliver(gateway, { ...known, secret })).body.status).toBe('ok');
  const authentications: unknown[] = [];
  for (const signed of [{ secret: 'wrong' }, { secret }]) {
    const { status, body, headers } = await deliver(gateway, { ...known, ...signed });
    expect([status, body]).toEqual([200, { status: 'duplicate' }]);
    const record = await gateway.call(getDelivery, {
      params: { webhookId: headers.get('x-webhook-id')! as never },
    });
    authentications.push(record.steps.find(({ step }) => step === 'authentication')?.outcome);
  }
  expect(authentications).toEqual(['validator_refused', 'ok (current)']);
  expect(handlerRuns(gateway)).toBe(1);
});

test('stalled requests hold no permit of the endpoint', async () => {
  const gateway = await startGateway();
  const secret = await provision(gateway, 'plain');
  const head =
    'POST /webhooks/%40acme%2Forders/plain HTTP/1.1\r\nHost: a\r\nX-Svc-Namespace: default\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n{\r\n';
  for (let i = 0; i < 70; i++) {
    const socket = connect(gateway.port, '127.0.0.1');
    onTestFinished(() => void socket.destroy());
    await new Promise<void>((resolve) => socket.write(head, () => resolve()));
  }
  expect(await statusesOf(gateway, 60, { event: 'plain', secret })).toEqual([200]);
});

test('of many concurrent signed deliveries, exactly the limit is accepted', async () => {
  const gateway = await startGateway();
  const secret = await provision(gateway, 'plain');
  const replies = await Promise.all(
    Array.from({ length: 80 }, () => statusOf(gateway, { event: 'plain', secret })),
  );
  expect(replies.filter((status) => status === 200)).toHaveLength(60);
  expect(replies.filter((status) => status === 429)).toHaveLength(20);
});

test('deliveries that lose a race for one id return their permit', async () => {
  const gateway = await startGateway();
  const secret = await provision(gateway, 'identified');
  const racing = { event: 'identified', secret, payload: { delivery: { id: 'same' }, sleepMs: 100 } };
  expect(await statusesOf(gateway, 20, racing)).toEqual([200]);
  expect(handlerRuns(gateway)).toBe(1);
  expect(await statusesOf(gateway, 59, { event: 'identified', secret })).toEqual([200]);
  expect(await statusOf(gateway, { event: 'identified', secret })).toBe(429);
});

test('the window slides: a burst at its end uses up the next minute', async () => {
  const gateway = await startGateway();
  const secret = await provision(gateway, 'plain');
  const signed = { event: 'plain', secret };
  expect(await statusOf(gateway, signed)).toBe(200);
  gateway.clock.advance(seconds(59));
  expect(await statusesOf(gateway, 59, signed)).toEqual([200]);
  gateway.clock.advance(seconds(1));
  expect([await statusOf(gateway, signed), await statusOf(gateway, signed)]).toEqual([200, 429]);
  gateway.clock.advance(seconds(59));
  expect(await statusesOf(gateway, 59, signed)).toEqual([200]);
});

test('behind one untrusted proxy a validator still accepts the genuine sender', async () => {
  const gateway = await startGateway();
  const secret = await provision(gateway, 'checked');
  const from = (address: string) => ({ headers: { 'x-forwarded-for': address } });
  for (let i = 0; i < 130; i++)
    await deliver(gateway, { event: 'checked', secret: 'wrong', ...from(`203.0.113.${i}`) });
  expect(await statusOf(gateway, { event: 'checked', secret: 'wrong' })).toBe(429);
  // The limit of this endpoint is 60, of which the refused ones have none.
  expect(await statusesOf(gateway, 60, { event: 'checked', secret, ...from('198.51.100.1') })).toEqual([200]);
});

test('addresses behind a trusted proxy have separate budgets, one for each IPv6 /64', async () => {
  const gateway = await startGateway({ config: { gateway: { trustedProxies: ['127.0.0.1'] } } });
  await provision(gateway, 'plain');
  const from = (address: string) => ({ event: 'plain', headers: { 'x-forwarded-for': address } });
  expect(await statusesOf(gateway, 120, from('2001:db8::1'))).toEqual([401]);
  expect(await statusOf(gateway, from('2001:db8:0:0:ffff::2'))).toBe(429);
  expect(await statusOf(gateway, from('2001:db8:0:1::1'))).toBe(401);
  expect(await statusOf(gateway, from('203.0.113.1'))).toBe(401);
});

test('namespaces without a secret have separate budgets per address', async () => {
  const gateway = await startGateway({ config: { gateway: { trustedProxies: ['127.0.0.1'] } } });
  const secret = await provision(gateway, 'challenged');
  const other = await provision(gateway, 'challenged', undefined, OTHER_TOKEN);
  const challenge = (namespace: string, address: string) => ({
    ...{ event: 'challenged', payload: CHALLENGE, namespace },
    headers: { 'x-forwarded-for': address },
  });
  expect(await statusesOf(gateway, 60, challenge('made-up', '203.0.113.1'))).toEqual([200]);
  expect(await statusOf(gateway, challenge('made-up-too', '203.0.113.1'))).toBe(429);
  // A new tenant verifies its endpoint before it provisions.
  expect(await statusOf(gateway, challenge('new-tenant', '203.0.113.2'))).toBe(200);
  expect(await statusesOf(gateway, 60, { event: 'challenged', secret })).toEqual([200]);
  expect(await statusOf(gateway, { event: 'challenged', secret: other, namespace: 'other' })).toBe(200);
  await eventually(() => expect(handlerRuns(gateway)).toBe(61));
});
