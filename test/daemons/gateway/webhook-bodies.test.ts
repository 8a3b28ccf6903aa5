import { join } from 'node:path';
import { expect, test, vi } from 'vitest';
import {
  listObjects,
  pauseWebhook,
  replayDelivery,
  resumeWebhook,
  sendSample,
} from '../../../src/contracts/index.ts';
import { createPeers } from '../../../src/daemons/peers.ts';
import { state } from '../../../src/daemons/state/index.ts';
import { startTestDaemon } from '../../support/daemon.ts';
import type { TestGateway } from '../../support/gateway.ts';
import { latestDelivery, provisionInbound, send, startInbound } from './support/inbound.ts';

const FORM = { 'content-type': 'application/x-www-form-urlencoded' };
/** Leaves the store as a crash between the files and their delivery would. */
async function removeDelivery(dataDir: string, webhookId: string): Promise<void> {
  const { default: Database } = await import('better-sqlite3');
  const db = new Database(join(dataDir, 'svc.db'));
  db.prepare("delete from delivery where webhook_id = unhex(?, '-')").run(webhookId);
  db.close();
}

const SOON = { timeout: 20_000 };
const handled = (gateway: Pick<TestGateway, 'logs'>) =>
  gateway.logs.lines.filter(({ message }) => message === 'handled');

test('a form: the handler gets fields, the JSON field as its value, the content type and the bytes', async () => {
  const gateway = await startInbound();
  const secret = await provisionInbound(gateway, 'form');
  const body = 'id=1&a=x+y&a=2&payload=%7B%22type%22%3A%22button%22%7D';
  const response = await send(gateway, 'form', { secret, body, headers: FORM });
  expect(response.status).toBe(200);
  const payload = { id: '1', a: ['x y', '2'], payload: { type: 'button' } };
  expect(await response.json()).toMatchObject({
    result: {
      payload,
      again: payload,
      contentType: FORM['content-type'],
      raw: Buffer.from(body).toString('base64'),
    },
  });
  const again = await send(gateway, 'form', { secret, body, headers: FORM });
  expect(await again.json()).toEqual({ status: 'duplicate' });
});

test('only a webhook that declares its body checks the content type', async () => {
  const gateway = await startInbound();
  const form = await provisionInbound(gateway, 'form');
  const refused = await send(gateway, 'form', {
    secret: form,
    body: '{}',
    headers: { 'content-type': 'application/json' },
  });
  expect([refused.status, await refused.json()]).toMatchObject([
    415,
    {
      error: {
        code: 'UNSUPPORTED_MEDIA_TYPE',
        message: expect.stringContaining('application/x-www-form-urlencoded'),
      },
    },
  ]);
  const plain = await provisionInbound(gateway, 'plain');
  const accepted = await send(gateway, 'plain', { secret: plain, body: '{"a":1}', headers: FORM });
  expect(await accepted.json()).toMatchObject({ result: { payload: { a: 1 } } });
  const sns = await provisionInbound(gateway, 'sns-like');
  const asText = await send(gateway, 'sns-like', {
    secret: sns,
    body: '{"a":1}',
    headers: { 'content-type': 'text/plain; charset=UTF-8' },
  });
  expect(await asText.json()).toMatchObject({ result: { payload: { a: 1 } } });
});

test('a body that is not in its format is 400 for an authentic sender, and 401 for others', async () => {
  const gateway = await startInbound();
  const secret = await provisionInbound(gateway, 'xml');
  const headers = { 'content-type': 'text/xml' };
  const body = '<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>';
  const refused = await send(gateway, 'xml', { secret, body, headers });
  expect([refused.status, await refused.json()]).toMatchObject([
    400,
    { error: { message: 'The body is not valid XML: it contains a DTD.' } },
  ]);
  expect((await send(gateway, 'xml', { secret: 'wrong', body, headers })).status).toBe(401);
  const taken = await send(gateway, 'xml', { secret, body: '<a b="1">é</a>', headers });
  expect(await taken.json()).toMatchObject({ result: { payload: { a: { '@b': '1', '#text': 'é' } } } });
});

test('text, raw bytes and CloudEvents', async () => {
  const gateway = await startInbound();
  const text = await send(gateway, 'text', {
    secret: await provisionInbound(gateway, 'text'),
    body: 'hello',
    headers: { 'content-type': 'text/plain' },
  });
  expect(await text.json()).toMatchObject({ result: { payload: 'hello' } });
  const raw = await send(gateway, 'raw', {
    secret: await provisionInbound(gateway, 'raw'),
    body: Buffer.from([0, 255]),
  });
  expect(await raw.json()).toMatchObject({ result: { payload: 'AP8=', raw: 'AP8=' } });
  const event = await send(gateway, 'events', {
    secret: await provisionInbound(gateway, 'events'),
    body: '{"n":1}',
    headers: {
      'content-type': 'application/json',
      ...{ 'ce-specversion': '1.0', 'ce-id': 'e1', 'ce-type': 'made', 'ce-source': '/here' },
    },
  });
  expect(await event.json()).toMatchObject({
    result: { payload: { specversion: '1.0', id: 'e1', type: 'made', source: '/here', data: { n: 1 } } },
  });
});

test('retries, replays and deliveries after a restart parse the stored body in the same format', async () => {
  const first = await startInbound();
  const secret = await provisionInbound(first, 'async-form');
  const sent = await send(first, 'async-form', { secret, body: 'a=1&fail=yes', headers: FORM });
  expect(sent.status).toBe(202);
  await vi.waitFor(() => expect(handled(first)).toHaveLength(1), SOON);
  await first.close();
  const { dataDir, clock } = first;
  const second = await startInbound({ dataDir, clock });
  const ended = async () => {
    clock.advance(100);
    const delivery = await latestDelivery(second);
    expect(delivery.status).toBe('succeeded');
    return delivery;
  };
  const expected = { result: { payload: { a: '1', fail: 'yes' }, contentType: FORM['content-type'] } };
  const { webhookId, outcome } = await vi.waitFor(ended, SOON);
  expect(outcome).toMatchObject(expected);
  await second.call(replayDelivery, { params: { webhookId } } as never);
  await vi.waitFor(async () => {
    expect(await ended()).toMatchObject({ origin: 'replay', outcome: expected });
  }, SOON);
});

test('files of multipart are objects of the plugin, stored after authentication', async () => {
  const store = await startTestDaemon(state);
  const gateway = await startInbound({ peers: createPeers({ state: store.url }) });
  const secret = await provisionInbound(gateway, 'files');
  const form = () => {
    const made = new FormData();
    made.append('title', 'Report');
    made.append('doc', new File(['content é'], 'a b.txt', { type: 'text/plain' }));
    return made;
  };
  expect((await send(gateway, 'files', { secret: 'wrong', body: form() })).status).toBe(401);
  const response = await send(gateway, 'files', { secret, body: form() });
  const { webhookId, result } = (await response.json()) as { webhookId: string; result: unknown };
  const key = `webhooks/${webhookId}/0`;
  expect(result).toEqual({
    payload: { title: 'Report', doc: { filename: 'a b.txt', contentType: 'text/plain', bytes: 10, key } },
    read: { doc: ['content é'] },
  });
  const replayed = await gateway.call(replayDelivery, { params: { webhookId } } as never);
  await vi.waitFor(async () => {
    const { outcome, webhookId: id } = await latestDelivery(gateway);
    expect(id).toBe(replayed.webhookId);
    expect(outcome).toMatchObject({ result: { read: { doc: ['content é'] } } });
  }, SOON);
  const tooLarge = new FormData();
  tooLarge.append('doc', new File([new Uint8Array(5 * 1024 * 1024 + 1)], 'large'));
  expect((await send(gateway, 'files', { secret, body: tooLarge })).status).toBe(413);
});

test('files survive a restart before the handler, and are deleted after their delivery', async () => {
  const store = await startTestDaemon(state);
  const peers = createPeers({ state: store.url });
  const config = { retention: { deliveriesDays: 1 } };
  const first = await startInbound({ peers, config });
  const secret = await provisionInbound(first, 'async-files');
  const target = { body: { pluginId: 'inbound', event: 'async-files' } } as never;
  await first.call(pauseWebhook, target);
  const form = new FormData();
  form.append('doc', new File(['kept'], 'x'));
  expect((await send(first, 'async-files', { secret, body: form })).status).toBe(202);
  await first.close();

  const { dataDir, clock } = first;
  const second = await startInbound({ dataDir, clock, peers, config });
  await second.call(resumeWebhook, target);
  const ended = async () => {
    const delivery = await latestDelivery(second);
    expect(delivery).toMatchObject({ status: 'succeeded', outcome: { result: { read: { doc: ['kept'] } } } });
    return delivery.webhookId;
  };
  const webhookId = await vi.waitFor(ended, SOON);
  const objects = () =>
    store.call(listObjects, {
      params: { namespace: 'plugin:inbound' },
      query: { prefix: 'webhooks/' },
    } as never);
  expect((await objects()).items.map(({ key }) => key)).toEqual([`webhooks/${webhookId}/0`]);
  await vi.waitFor(async () => {
    clock.advance(13 * 3600_000);
    expect((await objects()).items).toEqual([]);
  }, SOON);
});

test('files whose delivery was never stored are deleted', async () => {
  const store = await startTestDaemon(state);
  const gateway = await startInbound({ peers: createPeers({ state: store.url }) });
  const secret = await provisionInbound(gateway, 'files');
  const form = new FormData();
  form.append('doc', new File(['x'], 'x'));
  await send(gateway, 'files', { secret, body: form });
  const { webhookId } = await latestDelivery(gateway);
  await gateway.close();
  await removeDelivery(gateway.dataDir, webhookId);
  const { dataDir, clock } = gateway;
  await startInbound({ dataDir, clock, peers: createPeers({ state: store.url }) });
  const objects = () => store.call(listObjects, { params: { namespace: 'plugin:inbound' } } as never);
  expect((await objects()).items).toHaveLength(1);
  await vi.waitFor(async () => {
    clock.advance(3600_000);
    expect((await objects()).items).toEqual([]);
  }, SOON);
});

test('without the state service a delivery with files is 503, so that the sender repeats it', async () => {
  const gateway = await startInbound({ peers: createPeers({ state: 'http://127.0.0.1:9' }) });
  const secret = await provisionInbound(gateway, 'async-files');
  const form = new FormData();
  form.append('doc', new File(['x'], 'x'));
  expect((await send(gateway, 'async-files', { secret, body: form })).status).toBe(503);
});

test('a sample can be sent in any format', async () => {
  const gateway = await startInbound();
  await provisionInbound(gateway, 'form');
  const bytes = Buffer.from('id=7').toString('base64');
  const body = { pluginId: 'inbound', event: 'form', bytes } as never;
  expect(await gateway.call(sendSample, { body })).toMatchObject({
    status: 200,
    body: { result: { payload: { id: '7' }, contentType: FORM['content-type'] } },
  });
});
