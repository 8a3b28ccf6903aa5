import { describe, expect, test } from 'vitest';
import {
  createEndpoint,
  getMessage,
  publishMessage,
  testEndpoint,
  updateEndpoint,
} from '../../../../src/contracts/index.ts';
import { type AddressRules, requireAllowedUrl } from '../../../../src/daemons/outgoing/endpoint-address.ts';
import { MessageClient } from '../../../../src/daemons/outgoing/message-client.ts';
import type { Resolve } from '../../../../src/plugins/services/resolve.ts';
import { startGateway } from '../../../support/gateway.ts';
import { startReceiver } from '../../../support/message-receiver.ts';

const RULES: AddressRules = { allowPrivateAddresses: false, allow: [], requireHttps: false };
const allows = (url: string, rules: Partial<AddressRules> = {}): boolean => {
  try {
    requireAllowedUrl(new URL(url), { ...RULES, ...rules });
    return true;
  } catch {
    return false;
  }
};

test.each([
  ['http://example.com', true],
  ['https://example.com:8443/hook', true],
  ['http://93.184.216.34', true],
  ['http://127.0.0.1', false],
  ['http://0177.0.0.1', false],
  ['http://2130706433', false],
  ['http://10.1.2.3', false],
  ['http://172.16.0.1', false],
  ['http://192.168.1.1', false],
  ['http://169.254.169.254/latest', false],
  ['http://100.64.0.1', false],
  ['http://100.100.100.200', false],
  ['http://0.0.0.0', false],
  ['http://224.0.0.1', false],
  ['http://255.255.255.255', false],
  ['http://[::1]', false],
  ['http://[fe80::1]', false],
  ['http://[fc00::1]', false],
  ['http://[ff02::1]', false],
  ['http://[::ffff:10.0.0.1]', false],
  ['http://[2002:7f00:1::]', false],
  ['http://[64:ff9b::a00:1]', false],
  ['http://example.com:22', false],
  ['http://example.com:25', false],
  ['http://example.com:6379', false],
  ['http://example.com:5432', false],
  ['http://example.com:9200', false],
])('the URL %s is allowed: %s', (url, isAllowed) => {
  expect(allows(url)).toBe(isAllowed);
});

test('the config allows private addresses, or single hosts', () => {
  const privates = { allowPrivateAddresses: true };
  expect(allows('http://10.0.0.5:8080', privates)).toBe(true);
  expect(allows('http://169.254.169.254', privates)).toBe(false);
  expect(allows('http://10.0.0.5:6379', privates)).toBe(false);
  const allow = ['10.0.0.5:6379', 'intranet', '169.254.1.1'];
  expect(allows('http://10.0.0.5:6379', { allow })).toBe(true);
  expect(allows('http://10.0.0.5:8080', { allow })).toBe(false);
  expect(allows('http://10.0.0.6:6379', { allow })).toBe(false);
  expect(allows('http://169.254.1.1', { allow })).toBe(true);
  expect(allows('http://example.com', { requireHttps: true })).toBe(false);
  expect(allows('https://example.com', { requireHttps: true })).toBe(true);
  expect(allows('http://intranet', { requireHttps: true, allow })).toBe(true);
});

describe('names', () => {
  const resolveTo =
    (...addresses: string[]): Resolve =>
    (_host, _options, callback) =>
      callback(
        null,
        addresses.map((address) => ({ address, family: address.includes(':') ? 6 : 4 })),
      );
  const request = (url: string) => ({
    url: new URL(url),
    headers: [],
    body: Buffer.from('{}'),
    timeoutMs: 5000,
  });

  test.each([['127.0.0.1'], ['10.0.0.7'], ['169.254.169.254'], ['::ffff:127.0.0.1'], ['fd00:ec2::254']])(
    'a name that leads to %s is refused on the connection, without its address in the error',
    async (address) => {
      const client = new MessageClient(RULES, resolveTo('93.184.216.34', address));
      const sent = client.send(request('http://rebinding.example/'));
      await expect(sent).rejects.toMatchObject({ code: 'PERMISSION_DENIED' });
      await sent.catch((error: Error) => expect(error.message).not.toContain(address));
      await client.close();
    },
  );

  test('a name that changes its address between two requests is refused at the second', async () => {
    const receiver = await startReceiver();
    let address = '127.0.0.1';
    const client = new MessageClient(
      { ...RULES, allow: [`first.example:${receiver.port}`] },
      (host, options, callback) => resolveTo(address)(host, options, callback),
    );
    const first = await client.send(request(`http://first.example:${receiver.port}/`));
    expect(first.status).toBe(200);
    address = '169.254.169.254';
    const other = client.send(request(`http://second.example:${receiver.port}/`));
    await expect(other).rejects.toMatchObject({ code: 'PERMISSION_DENIED' });
    await client.close();
  });
});

test('a refused URL is refused at its creation and change, and at each attempt', async () => {
  const gateway = await startGateway();
  const create = (url: string) => gateway.call(createEndpoint, { body: { url } });
  for (const url of ['http://127.0.0.1:8080', 'http://[::1]', 'http://example.com:22'])
    await expect(create(url)).rejects.toMatchObject({ code: 'PERMISSION_DENIED' });
  for (const url of ['http://user:pass@example.com', 'ftp://example.com', 'file:///etc/passwd'])
    await expect(create(url)).rejects.toMatchObject({ code: 'VALIDATION_ERROR' });
  const { id } = await create('http://localhost:8080');
  const update = gateway.call(updateEndpoint, { params: { id }, body: { url: 'http://10.0.0.1' } });
  await expect(update).rejects.toMatchObject({ code: 'PERMISSION_DENIED' });
  const attempt = await gateway.call(testEndpoint, { params: { id }, body: {} });
  expect(attempt).toMatchObject({ outcome: 'failed', responseStatus: null });
  expect(attempt.error).toMatch(/^Messages to localhost are refused: it has a loopback address/);
});

test.each([
  ['webhook-id', 'x'],
  ['Host', 'x'],
  ['content-length', '1'],
  ['transfer-encoding', 'chunked'],
  ['X-A', 'a\r\nwebhook-id: b'],
  ['X A', 'b'],
])('the custom header %s: %j is refused', async (name, value) => {
  const gateway = await startGateway();
  const body = { url: 'https://example.com', headers: { [name]: value } };
  await expect(gateway.call(createEndpoint, { body })).rejects.toMatchObject({ code: 'VALIDATION_ERROR' });
});

test('a redirect is not followed', async () => {
  const gateway = await startGateway({ config: { outgoing: { allowPrivateAddresses: true } } });
  const [receiver, target] = [await startReceiver(), await startReceiver()];
  receiver.answer((_message, response) => response.writeHead(307, { location: target.url }).end());
  await gateway.call(createEndpoint, { body: { url: receiver.url } });
  const { id } = await gateway.call(publishMessage, { body: { type: 'x', data: 1 } });
  await expect
    .poll(async () => (await gateway.call(getMessage, { params: { id } })).endpoints[0])
    .toMatchObject({ status: 'retrying', lastError: 'HTTP 307: redirects are not followed' });
  expect(target.received).toEqual([]);
});
