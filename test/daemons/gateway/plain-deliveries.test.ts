import { Agent, request } from 'node:http';
import { connect } from 'node:net';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { getDelivery } from '../../../src/contracts/index.ts';
import { createDeliveryUrls } from '../../../src/daemons/gateway/routes/webhook-url.ts';
import { provision, startGateway, type TestGateway } from '../../support/gateway.ts';

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

/** node:http reads it, and the framework never sees it. */
const THROUGH_NODE: Headers = { te: 'trailers' };
/** Which of two such headers counts is for the framework to say, so it serves. */
const THROUGH_ROUTER: Headers = { 'x-forwarded-for': ['203.0.113.9', '203.0.113.10'] };

async function start() {
  const gateway = await startGateway({ config: { gateway: { trustedProxies: ['127.0.0.1'] } } });
  return {
    gateway,
    secret: await provision(gateway, 'plain'),
    shop: await provision(gateway, 'shop', 'a/b c'),
  };
}

const PATHS = [
  '/webhooks/%40acme%2Forders/plain',
  '/webhooks/@acme%2Forders/plain',
  '/webhooks/%40acme%2Forders/plain?namespace=default',
  '/webhooks/%40acme%2Forders/plain/',
  '/webhooks/%40acme%2Forders/plain/extra',
  '/webhooks/%40acme%2Forders/shop/a%2Fb%20c',
  '/webhooks/%40acme%2Forders/shop/a%2Fb%20c?namespace=other&namespace=default',
  '/webhooks/%40acme%2Forders/shop',
  '/webhooks/%40acme%2Forders/nothing',
  '/webhooks/nobody/plain',
  '/webhooks/%40acme%2Forders',
  '/webhooks/a/b/c/d',
  '/webhooks//plain',
  '/webhooks/%40acme%2Forders/../plain',
  '/webhooks/%40acme%2Forders/%zz',
  '/webhooks/%40acme%2Forders/%ff',
  `/webhooks/%40acme%2Forders/shop/${'i'.repeat(3000)}`,
];

test('whatever the path, it is answered the same as a plain request, past the framework and through it', async () => {
  const { gateway, secret, shop } = await start();
  for (const path of PATHS) {
    for (const isNamed of [false, true]) {
      const headers: Record<string, string> = { 'x-token': path.includes('shop') ? shop : secret };
      if (isNamed) headers['x-svc-namespace'] = 'default';
      const plain = await post(gateway, path, headers);
      const seen = ({ status, headers: sent, body }: typeof plain) => [
        path,
        status,
        JSON.parse(body).error?.code ?? Object.keys(JSON.parse(body)),
        Object.keys(sent).toSorted(),
      ];
      for (const way of [THROUGH_NODE, THROUGH_ROUTER])
        expect(seen(await post(gateway, path, { ...headers, ...way }))).toEqual(seen(plain));
    }
  }
});

test('a forwarded address counts from a trusted proxy alone', async () => {
  const forwarded = { 'x-forwarded-for': '198.51.100.1, 203.0.113.9', 'x-svc-namespace': 'default' };
  const sourceOf = async (gateway: TestGateway) => {
    const secret = await provision(gateway, 'plain');
    const { headers } = await post(gateway, PATHS[0]!, { ...forwarded, 'x-token': secret });
    const params = { webhookId: headers['x-webhook-id'] as string };
    return (await gateway.call(getDelivery, { params })).source;
  };
  expect(await sourceOf((await start()).gateway)).toBe('203.0.113.9');
  expect(await sourceOf(await startGateway())).toBe('127.0.0.1');
});

test('all ways leave an access line and count under the pattern of the route', async () => {
  const { gateway, secret } = await start();
  const path = '/webhooks/%40acme%2Forders/plain';
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
  await post(gateway, path, { ...headers, 'x-request-id': 'mine', 'x-trace-id': 'my-trace' });
  for (const way of [THROUGH_NODE, THROUGH_ROUTER]) await post(gateway, path, { ...headers, ...way });
  expect(await counted()).toBe(countedBefore + 3);
  const [plain, ...others] = lines().slice(linesBefore);
  expect(plain).toMatchObject({ requestId: 'mine', traceId: 'my-trace', tenantId: 'default' });
  expect(others).toMatchObject([{ tenantId: 'default' }, { tenantId: 'default' }]);
  for (const line of [plain, ...others]) expect(line!.spanId).toMatch(/^[0-9a-f]{16}$/);
});

test('a delivery without ids of its sender names its request and its trace by its own', async () => {
  const { gateway, secret } = await start();
  const { headers } = await post(gateway, '/webhooks/%40acme%2Forders/plain', {
    'x-token': secret,
    'x-svc-namespace': 'default',
  });
  const webhookId = headers['x-webhook-id'] as string;
  expect(headers['x-request-id']).toBe(webhookId);
  const line = gateway.logs.lines.findLast(({ requestId }) => requestId === webhookId);
  expect(line!.traceId).toBe(webhookId.replaceAll('-', ''));
});

test('no Host, or two, is refused as everywhere', async () => {
  const { gateway } = await start();
  for (const hosts of ['', 'Host: a\r\nHost: b\r\n']) {
    const answer = await raw(
      gateway,
      `POST /webhooks/%40acme%2Forders/plain HTTP/1.1\r\n${hosts}Content-Length: 2\r\nConnection: close\r\n\r\n{}`,
    );
    expect(answer).toMatch(/^HTTP\/1\.1 400 .*VALIDATION_ERROR/s);
  }
});

test('while the gateway drains, a delivery is answered and its connection ends', async () => {
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

test('what a URL says is what was encoded into it, at first sight and again', () => {
  const read = createDeliveryUrls();
  const part = fc.string({ minLength: 1, maxLength: 50, unit: 'grapheme' }).filter((text) => {
    try {
      return !/^\.{1,2}$/.test(text) && encodeURIComponent(text) !== '';
    } catch {
      return false;
    }
  });
  fc.assert(
    fc.property(
      part,
      part,
      fc.option(part, { nil: undefined }),
      fc.option(part, { nil: undefined }),
      (...parts) => {
        const [pluginId, event, instanceId, namespace] = parts;
        const path = [pluginId, event, ...(instanceId === undefined ? [] : [instanceId])].map(
          encodeURIComponent,
        );
        const query = namespace === undefined ? '' : `?namespace=${encodeURIComponent(namespace)}`;
        const url = `/webhooks/${path.join('/')}${query}`;
        const said = { pluginId, event, instanceId, namespaceInUrl: namespace };
        expect(read(url)).toEqual(said);
        expect(read(url)).toEqual(said);
      },
    ),
  );
});
