import { expect, test } from 'vitest';
import { createPeers } from '../../../src/daemons/peers.ts';
import type { AnyJson } from '../../support/any-json.ts';
import { MEMBER_TOKEN, startGateway, type TestGateway } from '../../support/gateway.ts';
import { REST_PROJECT, startRest } from '../rest/support.ts';

async function startBoth(gatewayConfig: Record<string, unknown>) {
  const rest = await startRest({ config: { auth: { mode: 'required' } } });
  return startGateway({
    projectDir: REST_PROJECT,
    peers: createPeers({ rest: rest.url }),
    config: { plugins: ['./plugins/shop'], gateway: gatewayConfig },
  });
}

async function call(gateway: TestGateway, path: string, init: RequestInit = {}) {
  const response = await gateway.fetch(path, init);
  return { status: response.status, headers: response.headers, text: await response.text() };
}

const SHOP = '/api/v1/plugins/shop';

test('a route that lists `none` requires a token, unless the config opens such routes', async () => {
  const gateway = await startBoth({});
  expect((await call(gateway, `${SHOP}/open`)).status).toBe(401);
});

test('with publicPluginRoutes it answers unauthenticated clients as tenant `default`, without a user', async () => {
  const gateway = await startBoth({ publicPluginRoutes: true });
  const { status, text } = await call(gateway, `${SHOP}/open?a=1`);
  expect([status, JSON.parse(text)]).toMatchObject([200, { user: null, tenantId: 'default' }]);
  expect((await call(gateway, '/api/v1/plugins/%40acme%2Fshop/open')).status).toBe(200);
  expect((await call(gateway, `${SHOP}/open`, { method: 'HEAD' })).status).toBe(200);
});

test('publicPluginRoutes opens no other route', async () => {
  const gateway = await startBoth({ publicPluginRoutes: true });
  for (const path of [
    `${SHOP}/orders`,
    `${SHOP}/for-both`,
    `${SHOP}/open/`,
    `${SHOP}/open/more`,
    `${SHOP}/nothing`,
    '/api/v1/routes',
    '/api/v1/commands',
    '/api/v1/workflows/runs',
  ])
    expect((await call(gateway, path)).status, path).toBe(401);
  expect((await call(gateway, `${SHOP}/open`, { method: 'POST' })).status).toBe(401);
});

test('a token that is sent is checked: a valid one identifies its bearer, an invalid one is 401', async () => {
  const gateway = await startBoth({ publicPluginRoutes: true });
  const by = (authorization: string, headers = {}) =>
    call(gateway, `${SHOP}/open`, { headers: { authorization, ...headers } });
  expect(JSON.parse((await by(`Bearer ${MEMBER_TOKEN}`)).text)).toMatchObject({ user: { hostId: 'member' } });
  for (const wrong of ['Bearer nonsense', 'Basic abc', 'Bearer'])
    expect((await by(wrong)).status, wrong).toBe(401);
});

test('headers of an unauthenticated client set neither tenant nor identity', async () => {
  const gateway = await startBoth({ publicPluginRoutes: true });
  const headers = { 'x-tenant-id': 'acme', 'x-svc-host-id': 'operator', 'x-svc-service-key': 'x' };
  const { text } = await call(gateway, `${SHOP}/open`, { headers });
  expect(JSON.parse(text)).toMatchObject({ user: null, tenantId: 'default' });
  const other = await call(gateway, `${SHOP}/open`, { headers: { 'x-svc-namespace': 'acme' } });
  expect(other.status).toBe(403);
});

test('rate limits apply to clients without a token', async () => {
  const gateway = await startBoth({ publicPluginRoutes: true, rateLimit: { perTokenPerMinute: 2 } });
  const statuses = [];
  for (let i = 0; i < 3; i++) statuses.push((await call(gateway, `${SHOP}/open`)).status);
  expect(statuses).toEqual([200, 200, 429]);
});

test.each([
  [true, []],
  [false, [{ bearer: [] }]],
])('the merged description matches the setting: with publicPluginRoutes %s', async (on, security) => {
  const gateway = await startBoth({ publicPluginRoutes: on });
  // On a busy machine the first description may lack the service, which has three seconds to answer.
  const merged = async () => JSON.parse((await call(gateway, '/openapi-merged.json')).text).paths;
  const pathsOf = (paths: AnyJson) => [paths[`${SHOP}/open`]?.get, paths[`${SHOP}/orders`]?.get];
  const expected = [{ security }, { security: [{ bearer: [] }] }];
  await expect.poll(async () => pathsOf(await merged()), { timeout: 30_000 }).toMatchObject(expected);
});
