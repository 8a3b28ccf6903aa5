import { expect, test } from 'vitest';
import { createPeers } from '../../../src/daemons/peers.ts';
import { MEMBER_TOKEN, startGateway } from '../../support/gateway.ts';
import { asCaller, REST_PROJECT, startRest } from '../rest/support.ts';

const SHOP = '/api/v1/plugins/shop';
const ORDER = { sku: 'abc', quantity: 2 };

/** The real gateway before the real REST API, and how one call goes by each way. */
async function startBoth() {
  const rest = await startRest({ config: { auth: { mode: 'required' } } });
  const gateway = await startGateway({
    projectDir: REST_PROJECT,
    peers: createPeers({ rest: rest.url }),
    config: { plugins: ['./plugins/shop'] },
  });
  async function call(
    url: string,
    headers: Record<string, string>,
    method: string,
    path: string,
    body?: unknown,
  ) {
    const response = await fetch(url + SHOP + path, {
      method,
      headers: { ...headers, ...(body === undefined ? {} : { 'content-type': 'application/json' }) },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const type = response.headers.get('content-type');
    const allow = response.headers.get('allow');
    return { status: response.status, type, allow, body: withoutIds(await response.text()) };
  }
  const direct = asCaller('member');
  const bearer = { authorization: `Bearer ${MEMBER_TOKEN}` };
  type Request = [method: string, path: string, body?: unknown];
  return {
    rest,
    gateway,
    direct: (...request: Request) => call(rest.url, direct, ...request),
    through: (...request: Request) => call(gateway.url, bearer, ...request),
  };
}

/** Each request has ids of its own. */
const withoutIds = (text: string) => text.replaceAll(/"requestId":"[^"]*"/g, '"requestId":""');

test('the answer of a plugin route is the same through the gateway, rule by rule', async () => {
  const { direct, through } = await startBoth();
  const answered: Array<[expected: number, method: string, path: string, body?: unknown]> = [
    // 1: input and parameters
    [200, 'POST', '/orders?quantity=9', ORDER],
    [200, 'PUT', '/orders/a%2Fb?x=1', { x: [1] }],
    [200, 'PATCH', '/orders/7', { x: null }],
    [200, 'DELETE', '/orders/7?force=yes'],
    [200, 'GET', '/orders?limit=5&tag=a&tag=b'],
    // 2: refused input
    [400, 'POST', '/orders', { sku: 'a', quantity: 0 }],
    [400, 'POST', '/orders'],
    [400, 'GET', '/orders?limit=1000'],
    // 3: exit code 0
    [200, 'POST', '/answers/text'],
    [200, 'POST', '/answers/nothing'],
    // 4: declared and undeclared codes
    [422, 'POST', '/answers/declared'],
    [503, 'POST', '/answers/declared-503'],
    [500, 'POST', '/answers/undeclared'],
    // 5: a throw
    [500, 'POST', '/answers/throw'],
    // 7: host and method
    [400, 'GET', '/wrong-kind'],
    [400, 'GET', '/wrong-method'],
    [405, 'POST', '/zod'],
    // 8: security
    [200, 'GET', '/for-tokens'],
    [200, 'GET', '/for-users'],
    [403, 'GET', '/for-oauth'],
    [404, 'GET', '/no-such-route'],
  ];
  for (const [expected, ...request] of answered) {
    const there = await through(...request);
    expect(there, request.join(' ')).toEqual(await direct(...request));
    expect(there.status, request.join(' ')).toBe(expected);
  }
}, 60_000);

test('6: a handler that exceeds its timeout is 504, before the gateway’s own timeout', async () => {
  const { rest, through } = await startBoth();
  await through('POST', '/answers/text');
  const pending = through('POST', '/hang');
  for (let answer: unknown; answer === undefined; ) {
    rest.clock.advance(500);
    answer = await Promise.race([pending, new Promise((resolve) => setTimeout(resolve, 100))]);
  }
  const { status, body } = await pending;
  expect([status, JSON.parse(body)]).toMatchObject([
    504,
    { error: { code: 'EXECUTION_TIMEOUT', details: { timeoutMs: 1500 } } },
  ]);
});

test('8: calls without a token are refused, and the handler sees the user of the token', async () => {
  const { gateway, through } = await startBoth();
  expect((await gateway.fetch(`${SHOP}/open`)).status).toBe(401);
  const { body } = await through('GET', '/for-users');
  expect(JSON.parse(body)).toMatchObject({
    user: { hostId: 'member', namespaceId: 'default' },
    tenantId: 'default',
  });
});
