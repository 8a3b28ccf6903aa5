import { createHmac } from 'node:crypto';
import { expect, onTestFinished, test } from 'vitest';
import {
  createSource,
  expectSourceSecret,
  listAudit,
  listDeliveries,
  rotateSource,
  SOURCES_PLUGIN_ID,
  type SourceName,
} from '../../../src/contracts/index.ts';
import { startGateway, type TestGateway } from '../../support/gateway.ts';

const params = (name: string) => ({ name: name as SourceName });

async function start(): Promise<TestGateway> {
  const gateway = await startGateway();
  onTestFinished(() => gateway.close());
  return gateway;
}

async function source(gateway: TestGateway, provider: string, secret?: string): Promise<string> {
  const body = { name: provider as SourceName, provider: provider as never, ...(secret ? { secret } : {}) };
  const { url } = await gateway.call(createSource, { body });
  return url.replace('localhost', '127.0.0.1');
}

async function newestDelivery(gateway: TestGateway) {
  const { items } = await gateway.call(listDeliveries, { query: { pluginId: SOURCES_PLUGIN_ID } });
  return items[0];
}

async function actions(gateway: TestGateway) {
  const { items } = await gateway.call(listAudit, { query: {} as never });
  return items.map(({ action, object, actor, namespaceId }) => ({ action, object, actor, namespaceId }));
}

test('a GET challenge at the URL of a source is answered as plain text, also before it has a secret', async () => {
  const gateway = await start();
  const url = await source(gateway, 'meta');
  const challenge = `${url}?hub.mode=subscribe&hub.verify_token=any&hub.challenge=%3Cb%3E1158201444`;
  const unprovisioned = await fetch(challenge);
  expect([unprovisioned.status, await unprovisioned.text()]).toEqual([200, '<b>1158201444']);
  await gateway.call(rotateSource, { params: params('meta'), body: { secret: 'the-app-secret' } });
  const answered = await fetch(challenge);
  expect([answered.status, await answered.text()]).toEqual([200, '<b>1158201444']);
  expect(answered.headers.get('content-type')).toBe('text/plain; charset=utf-8');
  expect(answered.headers.get('x-content-type-options')).toBe('nosniff');
  expect(await newestDelivery(gateway)).toMatchObject({ status: 'challenge', event: 'meta' });
  expect((await fetch(url)).status).toBe(405);
  expect((await fetch(url, { method: 'POST', body: '{}' })).status).toBe(401);
});

test('a validation token and a HEAD probe are answered by sources whose provider sends them', async () => {
  const gateway = await start();
  const graph = await source(gateway, 'microsoft-graph');
  const validated = await fetch(`${graph}?validationToken=Validation%3A%20abc`, { method: 'POST' });
  expect([validated.status, await validated.text()]).toEqual([200, 'Validation: abc']);
  expect(validated.headers.get('content-type')).toBe('text/plain; charset=utf-8');
  const trello = await source(gateway, 'trello', 'the-secret-of-trello');
  expect((await fetch(trello, { method: 'HEAD' })).status).toBe(200);
});

test('a source without handshakes and an unknown source are answered alike for other methods', async () => {
  const gateway = await start();
  const url = await source(gateway, 'github');
  for (const method of ['GET', 'HEAD', 'OPTIONS', 'PUT']) {
    const known = await fetch(url, { method });
    const unknown = await fetch(url.replace(/github$/, 'unknown'), { method });
    expect([404, 405], method).toContain(known.status);
    expect(unknown.status, method).toBe(known.status);
  }
});

test('the secret that Asana hands over is stored once, while the window is open, and audited', async () => {
  const gateway = await start();
  const url = await source(gateway, 'asana');
  const handOver = (secret: string) =>
    fetch(url, { method: 'POST', body: '{}', headers: { 'x-hook-secret': secret } });
  const deliver = (secret: string) => {
    const body = '{"events":[]}';
    const signature = createHmac('sha256', secret).update(body).digest('hex');
    const headers = { 'content-type': 'application/json', 'x-hook-signature': signature };
    return fetch(url, { method: 'POST', body, headers });
  };
  expect((await handOver('secret-before-the-window')).status).toBe(401);
  const opened = await gateway.call(expectSourceSecret, { params: params('asana'), body: { minutes: 5 } });
  expect(opened.expiresAt).toBe(gateway.clock.now() + 5 * 60_000);
  const answers = await Promise.all(['secret-number-1', 'secret-number-2'].map(handOver));
  expect(answers.map(({ status }) => status).sort()).toEqual([200, 401]);
  const taken = answers.find(({ status }) => status === 200)!.headers.get('x-hook-secret')!;
  expect((await deliver(taken)).status).toBe(200);
  expect((await deliver('another-secret')).status).toBe(401);
  expect((await handOver('secret-number-3')).status).toBe(401);
  const entries = await actions(gateway);
  expect(entries.filter(({ action }) => action === 'source.take_secret')).toEqual([
    {
      action: 'source.take_secret',
      object: 'source:asana',
      actor: 'sender:127.0.0.1',
      namespaceId: 'default',
    },
  ]);
  expect(entries.map(({ action }) => action)).toContain('source.expect_secret');
  expect(JSON.stringify([gateway.logs.lines, entries])).not.toContain('secret-number');
});

test('a source whose sender hands over no secret expects none', async () => {
  const gateway = await start();
  await source(gateway, 'github');
  const open = gateway.call(expectSourceSecret, { params: params('github'), body: { minutes: 5 } });
  await expect(open).rejects.toMatchObject({ code: 'VALIDATION_ERROR' });
});
