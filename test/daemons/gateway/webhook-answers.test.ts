import { expect, test, vi } from 'vitest';
import { getDelivery, provisionWebhook, WebhookHandlerDecl } from '../../../src/contracts/index.ts';
import { latestDelivery, provisionInbound, send, startInbound } from './support/inbound.ts';

const SOON = { timeout: 20_000 };

test('reply: handler: status, headers and body of the handler are the response', async () => {
  const gateway = await startInbound();
  const secret = await provisionInbound(gateway, 'reply');
  const reply = async (result: unknown) => {
    const response = await send(gateway, 'reply', { secret, body: JSON.stringify(result) });
    return {
      response,
      status: response.status,
      text: await response.text(),
      type: response.headers.get('content-type'),
    };
  };
  const twiml = '<?xml version="1.0"?><Response><Say>é</Say></Response>';
  const said = await reply({ headers: { 'Content-Type': 'text/xml' }, body: twiml });
  expect(said).toMatchObject({ status: 200, text: twiml, type: 'text/xml' });
  expect(said.response.headers.get('x-content-type-options')).toBe('nosniff');
  expect(said.response.headers.get('content-security-policy')).toBe('sandbox');
  expect(await reply({ body: { text: 'deployed' } })).toMatchObject({
    text: '{"text":"deployed"}',
    type: 'application/json; charset=utf-8',
  });
  expect(await reply({ status: 201, body: 'aGk=', encoding: 'base64' })).toMatchObject({
    status: 201,
    text: 'hi',
  });
  expect(await reply({ status: 204 })).toMatchObject({ status: 204, text: '', type: null });
  expect((await reply({ status: 404, headers: { 'x-own': '1' } })).response.headers.get('x-own')).toBe('1');
  expect((await latestDelivery(gateway)).httpStatus).toBe(404);
});

test.for([
  'text',
  { status: 99 },
  { status: 200, extra: 1 },
  { headers: { 'set-cookie': 'a=b' } },
  { headers: { 'Content-Length': '1' } },
  { headers: { connection: 'close' } },
  { headers: { 'x-svc-namespace': 'other' } },
  { headers: { 'content-security-policy': '*' } },
  { headers: { 'access-control-allow-origin': '*' } },
  { headers: { nel: '{}' } },
  { headers: { location: 'https://example.com' } },
  { headers: { 'x-a': 'a\r\nset-cookie: b' } },
  { headers: { 'a b': '1' } },
  { status: 204, body: 'x' },
  { body: '*', encoding: 'base64' },
])('an invalid reply is 500, and the record says why: %j', async (result) => {
  const gateway = await startInbound();
  const secret = await provisionInbound(gateway, 'reply');
  const response = await send(gateway, 'reply', { secret, body: JSON.stringify(result) });
  expect([response.status, await response.json()]).toMatchObject([
    500,
    { error: { code: 'INVALID_HANDLER_REPLY' } },
  ]);
  const { status, outcome } = await latestDelivery(gateway);
  expect(status).toBe('failed');
  expect(JSON.stringify(outcome)).toContain('returned no valid reply');
});

test('reply: handler and ackAfterMs are for sync webhooks', () => {
  const webhook = { event: 'e', handler: 'h.js#h', auth: { type: 'secret', header: 'x' }, async: true };
  expect(WebhookHandlerDecl.safeParse({ ...webhook, reply: 'handler' }).success).toBe(false);
  expect(WebhookHandlerDecl.safeParse({ ...webhook, ackAfterMs: 1000 }).success).toBe(false);
  expect(WebhookHandlerDecl.safeParse({ ...webhook, reply: 'platform' }).success).toBe(true);
  const accepted = { contentType: 'text/plain\r\nset-cookie: a=b' };
  expect(WebhookHandlerDecl.safeParse({ ...webhook, accepted }).success).toBe(false);
  const handshakes = [{ method: 'GET', reply: { headers: { 'x-a': 'b\r\nset-cookie: a=b' } } }];
  expect(WebhookHandlerDecl.safeParse({ ...webhook, handshakes }).success).toBe(false);
});

test('accepted: the sender gets the body that it requires, also for a duplicate', async () => {
  const gateway = await startInbound();
  const secret = await provisionInbound(gateway, 'acked-async');
  const response = await send(gateway, 'acked-async', { secret, body: '{}' });
  expect([response.status, response.headers.get('content-type'), await response.text()]).toEqual([
    200,
    'text/xml',
    '<Ack>true</Ack>',
  ]);
  const sync = await provisionInbound(gateway, 'acked');
  const body = '{"id":"1","sleepMs":0}';
  for (let i = 0; i < 2; i++) {
    const empty = await send(gateway, 'acked', { secret: sync, body });
    expect([empty.status, await empty.text()]).toEqual([200, '']);
  }
});

test('ackAfterMs: a slow handler continues after the answer, and runs once', async () => {
  const gateway = await startInbound();
  const secret = await provisionInbound(gateway, 'acked');
  const body = '{"id":"slow","sleepMs":1500,"n":1}';
  const response = await send(gateway, 'acked', { secret, body });
  expect([response.status, await response.text()]).toEqual([200, '']);
  const running = await latestDelivery(gateway);
  expect(running).toMatchObject({ status: 'running', mode: 'async' });
  // A redelivery is a duplicate at once, although the handler still runs.
  expect((await send(gateway, 'acked', { secret, body })).status).toBe(200);
  await vi.waitFor(async () => {
    const { outcome } = await gateway.call(getDelivery, {
      params: { webhookId: running.webhookId },
    } as never);
    expect(outcome).toMatchObject({ result: { n: 1 } });
  }, SOON);
  expect(gateway.logs.lines.filter(({ message }) => message === 'begun')).toHaveLength(1);
});

test('ackAfterMs: a handler that fails after the answer is failed, and can be replayed', async () => {
  const gateway = await startInbound();
  const secret = await provisionInbound(gateway, 'acked');
  await send(gateway, 'acked', { secret, body: '{"id":"bad","sleepMs":600,"fails":true}' });
  await vi.waitFor(async () => expect((await latestDelivery(gateway)).status).toBe('failed'), SOON);
});

test('a stop waits for handlers whose sender was answered', async () => {
  const gateway = await startInbound();
  const secret = await provisionInbound(gateway, 'acked');
  await send(gateway, 'acked', { secret, body: '{"id":"stop","sleepMs":1500,"n":2}' });
  await gateway.close();
  const { dataDir, clock } = gateway;
  const again = await startInbound({ dataDir, clock });
  expect(await latestDelivery(again)).toMatchObject({ status: 'succeeded', mode: 'async' });
});

test('provision puts the namespace into the URL for providers that cannot send the header', async () => {
  const gateway = await startInbound();
  const provisioned = (event: string, more = {}) =>
    gateway.call(provisionWebhook, { body: { pluginId: 'inbound', event, ...more } } as never);
  expect(await provisioned('github')).toMatchObject({
    url: expect.stringMatching(/\?namespace=default$/),
    namespaceInUrl: true,
  });
  expect(await provisioned('github', { namespaceInUrl: false })).toMatchObject({
    url: expect.not.stringContaining('?'),
    namespaceInUrl: false,
  });
  // A rotation keeps the setting.
  expect((await provisioned('github')).namespaceInUrl).toBe(false);
  expect((await provisioned('plain')).namespaceInUrl).toBe(false);
});
