import { createHmac } from 'node:crypto';
import { expect, test } from 'vitest';
import { expectSecret, listAudit } from '../../../src/contracts/index.ts';
import type { TestGateway } from '../../support/gateway.ts';
import { latestDelivery, provisionInbound, send, startInbound } from './support/inbound.ts';

const hmac = (secret: string, text: string, encoding: 'hex' | 'base64' = 'hex') =>
  createHmac('sha256', secret).update(text).digest(encoding);

const signed = (secret: string, body: string) => ({ body, headers: { 'x-signature': hmac(secret, body) } });

test('GET, HEAD and OPTIONS of webhooks without handshakes are answered as before', async () => {
  const gateway = await startInbound();
  for (const method of ['GET', 'HEAD', 'OPTIONS', 'PUT']) {
    const plain = await send(gateway, 'plain', { method });
    const unknown = await send(gateway, 'unknown', { method });
    expect([plain.status, unknown.status], method).toEqual([405, 405]);
    expect(plain.headers.get('allow')).toBe('POST');
  }
});

test('a GET challenge is answered as plain text, if the verify token is the secret', async () => {
  const gateway = await startInbound();
  const secret = await provisionInbound(gateway, 'verified');
  const query = (token: string, challenge: string) =>
    `&hub.mode=subscribe&hub.verify_token=${token}&hub.challenge=${encodeURIComponent(challenge)}`;
  const answered = await send(gateway, 'verified', {
    method: 'GET',
    query: query(secret, '<b>1158201444</b>'),
  });
  expect(await answered.text()).toBe('<b>1158201444</b>');
  expect(Object.fromEntries(answered.headers)).toMatchObject({
    'content-type': 'text/plain; charset=utf-8',
    'x-content-type-options': 'nosniff',
    'content-security-policy': 'sandbox',
  });
  expect((await latestDelivery(gateway)).status).toBe('challenge');
  expect((await send(gateway, 'verified', { method: 'GET', query: query('wrong', '1') })).status).toBe(401);
  for (const challenge of ['', 'é', 'a\nb', 'x'.repeat(1025)])
    expect(
      (await send(gateway, 'verified', { method: 'GET', query: query(secret, challenge) })).status,
      challenge,
    ).toBe(400);
  const repeated = await send(gateway, 'verified', {
    method: 'GET',
    query: `${query(secret, '1')}&hub.challenge=2`,
  });
  expect(repeated.status).toBe(400);
  expect((await send(gateway, 'verified', { method: 'GET' })).status).toBe(405);
  expect(JSON.stringify(gateway.logs.lines)).not.toContain(secret);
});

test('HEAD probes, validation tokens in the query and validation codes in the body', async () => {
  const gateway = await startInbound();
  await provisionInbound(gateway, 'verified');
  const probe = await send(gateway, 'verified', { method: 'HEAD' });
  expect([probe.status, await probe.text()]).toEqual([200, '']);
  const graph = await send(gateway, 'verified', { query: '&validationToken=Validation%3A%20abc' });
  expect([graph.status, await graph.text()]).toEqual([200, 'Validation: abc']);
  const grid = await send(gateway, 'verified', { body: '[{"eventType":"Validation","data":{"code":"C1"}}]' });
  expect([grid.status, await grid.json()]).toEqual([200, { validationResponse: 'C1' }]);
});

test('OPTIONS with WebHook-Request-Origin is answered with the origin and the rate', async () => {
  const gateway = await startInbound();
  await provisionInbound(gateway, 'events');
  const headers = { 'webhook-request-origin': 'events.example.com' };
  const answered = await send(gateway, 'events', { method: 'OPTIONS', headers });
  expect(answered.status).toBe(200);
  expect(answered.headers.get('webhook-allowed-origin')).toBe('events.example.com');
  expect(answered.headers.get('webhook-allowed-rate')).toBe('1000');
  expect((await send(gateway, 'events', { method: 'OPTIONS' })).status).toBe(405);
});

test('HMAC replies are never the signature of a delivery', async () => {
  const gateway = await startInbound();
  const secret = await provisionInbound(gateway, 'hmac');
  const ask = (plainToken: unknown) =>
    send(gateway, 'hmac', {
      body: JSON.stringify({ event: 'endpoint.url_validation', payload: { plainToken } }),
    });
  const zoom = await ask('qgg8vlvZRS6UYooatFL8Aw');
  expect(await zoom.json()).toEqual({
    plainToken: 'qgg8vlvZRS6UYooatFL8Aw',
    encryptedToken: hmac(secret, 'qgg8vlvZRS6UYooatFL8Aw'),
  });
  const crc = await send(gateway, 'hmac', { method: 'GET', query: '&crc_token=abc' });
  expect(await crc.json()).toEqual({ response_token: `sha256=${hmac(secret, 'abc', 'base64')}` });
  for (const forged of ['{"event":"x"}', '[]', '"x"', 'v0:1:{}', '1.5', '', 'x'.repeat(129), 5, null])
    expect((await ask(forged)).status, String(forged)).toBe(400);
  // A number passes as a challenge, but is no body of this webhook.
  expect((await ask('123')).status).toBe(200);
  expect((await send(gateway, 'hmac', signed(secret, '123'))).status).toBe(400);
  expect((await send(gateway, 'hmac', signed(secret, '{"a":1}'))).status).toBe(200);
  await provisionInbound(gateway, 'unsafe-hmac');
  expect((await send(gateway, 'unsafe-hmac', { method: 'GET', query: '&q=abc' })).status).toBe(401);
});

test('an authenticated handshake verifies its sender first', async () => {
  const gateway = await startInbound();
  const secret = await provisionInbound(gateway, 'hmac');
  const ping = await send(gateway, 'hmac', signed(secret, '{"type":1}'));
  expect([ping.status, await ping.json()]).toEqual([200, { type: 1 }]);
  expect((await latestDelivery(gateway)).status).toBe('challenge');
  expect((await send(gateway, 'hmac', signed('wrong', '{"type":1}'))).status).toBe(401);
});

test('a secret that the sender hands over is stored once, while the window is open, also after a restart', async () => {
  const first = await startInbound();
  const handOver = (gateway: TestGateway, value: string) =>
    send(gateway, 'taken', { headers: { 'x-hook-secret': value } });
  const open = (gateway: TestGateway) =>
    gateway.call(expectSecret, { body: { pluginId: 'inbound', event: 'taken', minutes: 5 } } as never);
  await provisionInbound(first, 'taken');
  expect((await handOver(first, 'secret-before-the-window')).status).toBe(401);
  await open(first);
  await first.close();

  const { dataDir, clock } = first;
  const gateway = await startInbound({ dataDir, clock });
  const answers = await Promise.all(
    ['secret-number-1', 'secret-number-2'].map((value) => handOver(gateway, value)),
  );
  expect(answers.map(({ status }) => status).sort()).toEqual([204, 401]);
  const taken = answers.find(({ status }) => status === 204)!.headers.get('x-hook-secret')!;
  expect((await send(gateway, 'taken', signed(taken, '{}'))).status).toBe(200);
  expect((await handOver(gateway, 'secret-number-3')).status).toBe(401);
  await open(gateway);
  clock.advance(5 * 60_000);
  expect((await handOver(gateway, 'secret-number-4')).status).toBe(401);
  const { items } = await gateway.call(listAudit, { query: {} } as never);
  expect(items.map(({ action }) => action)).toContain('webhook.expect_secret');
  const stored = items.filter(({ action }) => action === 'webhook.take_secret');
  expect(stored).toMatchObject([
    { object: 'webhook:inbound/taken', actorKind: 'sender', outcome: 'succeeded' },
  ]);
  expect(JSON.stringify(items)).not.toContain('secret-number');
  expect(JSON.stringify(gateway.logs.lines)).not.toContain('secret-number');
});

test('challenges are limited per address like other unauthenticated requests', async () => {
  const gateway = await startInbound();
  await provisionInbound(gateway, 'verified');
  const statuses = new Set<number>();
  for (let i = 0; i < 130; i++) statuses.add((await send(gateway, 'verified', { method: 'HEAD' })).status);
  expect(statuses).toEqual(new Set([200, 429]));
});
