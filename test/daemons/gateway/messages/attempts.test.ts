import { expect, test } from 'vitest';
import {
  createEndpoint,
  listMessages,
  publishMessage,
  testEndpoint,
} from '../../../../src/contracts/index.ts';
import type { GatewayServices } from '../../../../src/daemons/gateway/services.ts';
import { startGateway } from '../../../support/gateway.ts';
import { startReceiver } from '../../../support/message-receiver.ts';
import { freePort } from '../../../support/ports.ts';

async function world(settings: object = {}) {
  const gateway = await startGateway({ config: { outgoing: { allowPrivateAddresses: true } } });
  const receiver = await startReceiver();
  const { id } = await gateway.call(createEndpoint, { body: { url: receiver.url, ...settings } });
  const attempt = () => gateway.call(testEndpoint, { params: { id }, body: {} });
  return { gateway, receiver, attempt };
}

test('an attempt ends at its timeout, also if the answer has begun', async () => {
  const { receiver, attempt } = await world({ timeoutMs: 1000 });
  const timedOut = { outcome: 'failed', responseStatus: null, error: 'No answer within 1000 ms' };
  receiver.answer(() => {});
  expect(await attempt()).toMatchObject(timedOut);
  receiver.answer((_, response) => void response.writeHead(200, { 'content-length': 10 }).write('part'));
  expect(await attempt()).toMatchObject(timedOut);
});

test('the stored start of an answer is short, and safe to show in terminals', async () => {
  const { receiver, attempt } = await world();
  receiver.answer((_, response) => void response.writeHead(500).end('x'.repeat(50_000)));
  expect((await attempt()).responseExcerpt).toHaveLength(2048);
  receiver.answer((_, response) => void response.end('\u001b[31mred\u202e\u0000\n'));
  expect((await attempt()).responseExcerpt).toBe('\\u001b[31mred\\u202e\\u0000\n');
});

test('an answer without an end is cut off, and counts by its status', async () => {
  const { receiver, attempt } = await world();
  receiver.answer((_, response) => {
    response.writeHead(200);
    const write = (): void => {
      while (!response.destroyed && response.write('x'.repeat(16_384)));
      if (!response.destroyed) response.once('drain', write);
    };
    write();
  });
  expect(await attempt()).toMatchObject({ outcome: 'succeeded', responseStatus: 200 });
});

test('a refused connection is named without the address', async () => {
  const { attempt } = await world({ url: `http://localhost:${await freePort()}/` });
  const { error } = await attempt();
  expect(error).toBe('The connection was refused (ECONNREFUSED)');
});

test('a list with a filter that matches little answers a short page, and goes on by its cursor', {
  timeout: 120_000,
}, async () => {
  const { gateway } = await world({ types: ['never'] });
  const { publisher } = gateway.services as GatewayServices;
  const { id } = await gateway.call(publishMessage, { body: { type: 'rare', data: 1 } });
  const options = { namespaceId: 'default', traceId: 't' };
  for (let n = 0; n < 13_000; n += 1000)
    await Promise.all(
      Array.from({ length: 1000 }, () => publisher.publish({ type: 'frequent', data: 1 }, options)),
    );
  const list = (cursor?: string) =>
    gateway.call(listMessages, { query: { type: 'rare', limit: 10, ...(cursor ? { cursor } : {}) } });
  const first = await list();
  expect(first.items).toEqual([]);
  const second = await list(first.nextCursor!);
  expect([second.items.map((item) => item.id), second.nextCursor]).toEqual([[id], null]);
  const all = await gateway.call(listMessages, { query: { type: 'frequent', limit: 200 } });
  expect(all.items).toHaveLength(200);
});
