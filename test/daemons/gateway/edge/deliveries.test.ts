import { Agent, request } from 'node:http';
import { connect } from 'node:net';
import { expect, test } from 'vitest';
import { getDelivery } from '../../../../src/contracts/index.ts';
import { provision, startGateway, type TestGateway } from '../../../support/gateway.ts';

/** A request with its path as it stands, on a connection of its own that would stay; `fetch` would tidy it. */
function post(gateway: TestGateway, path: string, headers: Headers, body = '{}') {
  return new Promise<{ status: number; headers: Record<string, unknown>; body: string }>(
    (resolve, reject) => {
      const agent = new Agent({ keepAlive: true });
      const sending = request(
        { host: '127.0.0.1', port: gateway.port, method: 'POST', path, headers, agent },
        (response) => {
          let text = '';
          response.on('data', (chunk) => (text += chunk));
          response.on('end', () => {
            agent.destroy();
            resolve({ status: response.statusCode!, headers: response.headers, body: text });
          });
        },
      );
      sending.on('error', reject);
      sending.end(body);
    },
  );
}

type Headers = Record<string, string | string[]>;

async function start() {
  const gateway = await startGateway({ config: { gateway: { trustedProxies: ['127.0.0.1'] } } });
  return {
    gateway,
    secret: await provision(gateway, 'plain'),
    shop: await provision(gateway, 'shop', 'a/b c'),
  };
}

const PLAIN = '/webhooks/%40acme%2Forders/plain';
const SHOP = '/webhooks/%40acme%2Forders/shop';

/** Each path with its answer to a delivery whose namespace stands in a header, and to one without that header. */
const PATHS: Array<[path: string, named: unknown, unnamed: unknown]> = [
  [PLAIN, 200, 'NAMESPACE_REQUIRED'],
  ['/webhooks/@acme%2Forders/plain', 200, 'NAMESPACE_REQUIRED'],
  ['http://elsewhere.example/webhooks/@acme%2Forders/plain', 200, 'NAMESPACE_REQUIRED'],
  [`${PLAIN}?namespace=default`, 200, 'NAMESPACE_REQUIRED'],
  [`${PLAIN}/`, 200, 'NAMESPACE_REQUIRED'],
  [`${PLAIN}/extra`, 'WEBHOOK_NOT_FOUND', 'WEBHOOK_NOT_FOUND'],
  [`${SHOP}/a%2Fb%20c`, 200, 'NAMESPACE_REQUIRED'],
  [`${SHOP}/a%2Fb%20c?namespace=other&namespace=default`, 200, 'NAMESPACE_REQUIRED'],
  [SHOP, 'WEBHOOK_NOT_FOUND', 'WEBHOOK_NOT_FOUND'],
  ['/webhooks/%40acme%2Forders/nothing', 'WEBHOOK_NOT_FOUND', 'WEBHOOK_NOT_FOUND'],
  ['/webhooks/nobody/plain', 'PLUGIN_NOT_FOUND', 'PLUGIN_NOT_FOUND'],
  ['/webhooks/%40acme%2Forders', 'NOT_FOUND', 'NOT_FOUND'],
  ['/webhooks/a/b/c/d', 'NOT_FOUND', 'NOT_FOUND'],
  ['/webhooks//plain', 'PLUGIN_NOT_FOUND', 'PLUGIN_NOT_FOUND'],
  ['/webhooks/%40acme%2Forders/../plain', 'VALIDATION_ERROR', 'VALIDATION_ERROR'],
  ['/webhooks/%40acme%2Forders/%zz', 'VALIDATION_ERROR', 'VALIDATION_ERROR'],
  ['/webhooks/%40acme%2Forders/%ff', 'VALIDATION_ERROR', 'VALIDATION_ERROR'],
  [`${SHOP}/${'i'.repeat(3000)}`, 'NOT_FOUND', 'NOT_FOUND'],
];

test('every kind of delivery path has its answer', async () => {
  const { gateway, secret, shop } = await start();
  const answered = async (path: string, isNamed: boolean): Promise<unknown> => {
    const headers: Headers = { 'x-token': path.includes('shop') ? shop : secret };
    if (isNamed) headers['x-svc-namespace'] = 'default';
    const { status, headers: sent, body } = await post(gateway, path, headers);
    expect(sent['content-type']).toBe('application/json; charset=utf-8');
    expect(sent['x-request-id']).toMatch(/^[0-9a-f-]{36}$/);
    return status === 200 ? status : JSON.parse(body).error.code;
  };
  const answers: typeof PATHS = [];
  for (const [path] of PATHS) answers.push([path, await answered(path, true), await answered(path, false)]);
  expect(answers).toEqual(PATHS);
});

test.each([
  ['one header', '198.51.100.1, 203.0.113.9'],
  ['two headers', ['198.51.100.1', '203.0.113.9']],
])('a forwarded address in %s counts only from a trusted proxy', async (_how, addresses) => {
  const forwarded = { 'x-forwarded-for': addresses, 'x-svc-namespace': 'default' };
  const sourceOf = async (gateway: TestGateway) => {
    const secret = await provision(gateway, 'plain');
    const { headers } = await post(gateway, PLAIN, { ...forwarded, 'x-token': secret });
    const params = { webhookId: headers['x-webhook-id'] as string };
    return (await gateway.call(getDelivery, { params })).source;
  };
  expect(await sourceOf((await start()).gateway)).toBe('203.0.113.9');
  expect(await sourceOf(await startGateway())).toBe('127.0.0.1');
});

test('a delivery has an access line and is counted under its route pattern', async () => {
  const { gateway, secret } = await start();
  const headers = { 'x-token': secret, 'x-svc-namespace': 'default' };
  const lines = () =>
    gateway.logs.lines.filter(({ message }) => message === 'POST /webhooks/:pluginId/:event 200');
  const counted = async () => {
    const text = await (await fetch(`${gateway.url}/metrics`)).text();
    return Number(
      /svc_http_requests_total\{service="gateway",method="POST",route="\/webhooks\/:pluginId\/:event",status="200"\} (\d+)/.exec(
        text,
      )?.[1] ?? 0,
    );
  };
  const [linesBefore, countedBefore] = [lines().length, await counted()];
  await post(gateway, PLAIN, { ...headers, 'x-request-id': 'mine', 'x-trace-id': 'my-trace' });
  await post(gateway, PLAIN, headers);
  expect(await counted()).toBe(countedBefore + 2);
  const [named, unnamed] = lines().slice(linesBefore);
  expect(named).toMatchObject({ requestId: 'mine', traceId: 'my-trace', tenantId: 'default' });
  expect(unnamed).toMatchObject({ tenantId: 'default' });
  for (const line of [named, unnamed]) expect(line!.spanId).toMatch(/^[0-9a-f]{16}$/);
});

test('a delivery without request or trace id gets generated ones', async () => {
  const { gateway, secret } = await start();
  const { headers } = await post(gateway, PLAIN, {
    'x-token': secret,
    'x-svc-namespace': 'default',
  });
  const webhookId = headers['x-webhook-id'] as string;
  expect(headers['x-request-id']).toBe(webhookId);
  const line = gateway.logs.lines.findLast(({ requestId }) => requestId === webhookId);
  expect(line!.traceId).toBe(webhookId.replaceAll('-', ''));
});

test('a missing or repeated Host is refused as on other routes', async () => {
  const { gateway } = await start();
  for (const hosts of ['', 'Host: a\r\nHost: b\r\n']) {
    const answer = await raw(
      gateway,
      `POST /webhooks/%40acme%2Forders/plain HTTP/1.1\r\n${hosts}Content-Length: 2\r\nConnection: close\r\n\r\n{}`,
    );
    expect(answer).toMatch(/^HTTP\/1\.1 400 .*VALIDATION_ERROR/s);
  }
});

test('while the gateway drains, a delivery is answered and its connection closed', async () => {
  const gateway = await startGateway();
  const secret = await provision(gateway, 'plain');
  const head = `POST /webhooks/%40acme%2Forders/plain HTTP/1.1\r\nHost: a\r\nX-Svc-Namespace: default\r\nX-Token: ${secret}\r\nContent-Length: 2\r\n\r\n`;
  const answered = raw(gateway, head, async (socket) => {
    await new Promise((resolve) => setTimeout(resolve, 100));
    void gateway.close();
    socket.write('{}');
  });
  expect(await answered).toMatch(/^HTTP\/1\.1 200 .*connection: close/is);
});

function raw(
  gateway: TestGateway,
  text: string,
  then: (socket: import('node:net').Socket) => void = () => {},
): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect(gateway.port, '127.0.0.1');
    let answer = '';
    socket.on('connect', () => {
      socket.write(text);
      then(socket);
    });
    socket.on('data', (chunk) => (answer += chunk));
    socket.on('close', () => resolve(answer));
    socket.on('error', reject);
  });
}
