import { describe, expect, test } from 'vitest';
import { listHosts, PlatformConfig } from '../../../../src/contracts/index.ts';
import { minutes } from '../../../../src/kit/time/duration.ts';
import { asBearer } from '../support/login.ts';
import { rawGet } from '../support/raw-http.ts';
import { CI_HEADERS, CI_TOKEN, signJwt, startGateway } from '../support/start-gateway.ts';

const staticTokens = { [CI_TOKEN]: { hostId: 'ci', namespaceId: 'acme' } };
const limited = (rateLimit: Record<string, number>, tenants = {}) =>
  startGateway({ gateway: { staticTokens, rateLimit }, config: { tenants } });

test("the gateway's own paths below the prefix of an upstream answer other methods with 405 and Allow", async () => {
  const gateway = await startGateway();
  for (const [method, path, allow] of [
    ['PUT', '/api/v1/tokens', 'GET, HEAD, POST'],
    ['POST', '/api/v1/tokens/some-id', 'DELETE'],
    ['PATCH', '/api/v1/hosts/some-host', 'DELETE, GET, HEAD'],
    ['DELETE', '/api/v1/health', 'GET, HEAD'],
    ['GET', '/api/v1/webhooks/provision', 'POST'],
    ['GET', '/auth/token', 'POST'],
  ] as const) {
    const response = await gateway.fetch(path, { method, headers: CI_HEADERS });
    expect([response.status, response.headers.get('allow')], `${method} ${path}`).toEqual([405, allow]);
    expect(await response.json()).toMatchObject({ error: { code: 'METHOD_NOT_ALLOWED' } });
  }
  expect(gateway.upstream.seen).toEqual([]);
  expect((await gateway.fetch('/api/v1/tokens', { method: 'PUT' })).status).toBe(401);
  expect((await gateway.fetch('/api/v1/jobs', { method: 'PUT', headers: CI_HEADERS })).status).toBe(200);
});

test('trusted proxies are addresses and ranges; anything else is a config fault', () => {
  const check = (entry: string) => PlatformConfig.safeParse({ gateway: { trustedProxies: [entry] } });
  for (const entry of ['10.0.0.1', '10.0.0.0/8', '::1', 'fd00::/8', 'loopback', 'uniquelocal'])
    expect(check(entry).success, entry).toBe(true);
  for (const entry of ['', 'proxy.example', '10.0.0.0/33', '10.0.0', '*']) {
    expect(check(entry).error?.issues, entry).toMatchObject([
      {
        path: ['gateway', 'trustedProxies', 0],
        message: expect.stringMatching(/^must be an IP address, a range/),
      },
    ]);
  }
});

describe('limits', () => {
  test('per token: another spelling of the scheme allows no further calls', async () => {
    const gateway = await limited({ perTokenPerMinute: 2 });
    const statuses = [];
    for (const scheme of ['Bearer', 'bearer', 'BEARER', 'bEARER']) {
      const headers = { authorization: `${scheme} ${CI_TOKEN}` };
      statuses.push((await gateway.fetch('/api/v1/x', { headers })).status);
    }
    expect(statuses).toEqual([200, 200, 429, 429]);
  });

  test('per token: 429 with Retry-After and RateLimit headers, until the minute is over', async () => {
    const gateway = await limited({ perTokenPerMinute: 2 });
    const get = () => gateway.fetch('/api/v1/x', { headers: CI_HEADERS });
    const first = await get();
    expect(first.status).toBe(200);
    expect(Object.fromEntries(first.headers)).toMatchObject({
      'ratelimit-limit': '2',
      'ratelimit-remaining': '1',
      'ratelimit-reset': '60',
    });
    // The gateway's own endpoints count, and tell, as those behind it.
    const own = await gateway.fetch('/api/v1/whoami', { headers: CI_HEADERS });
    expect([own.status, own.headers.get('ratelimit-remaining')]).toEqual([200, '0']);
    gateway.clock.advance(10_000);
    const refused = await get();
    expect(refused.status).toBe(429);
    expect(Object.fromEntries(refused.headers)).toMatchObject({
      'retry-after': '50',
      'ratelimit-remaining': '0',
      'ratelimit-reset': '50',
    });
    expect(await refused.json()).toMatchObject({ error: { code: 'RATE_LIMIT_EXCEEDED' } });
    expect(gateway.upstream.seen).toHaveLength(1);
    const other = await gateway.fetch('/api/v1/x', {
      headers: { authorization: `Bearer ${await signJwt({})}` },
    });
    expect(other.status).toBe(200);
    gateway.clock.advance(50_000);
    expect((await get()).status).toBe(200);
  });

  test('per tenant, over all its tokens; a tenant limit overrides the default', async () => {
    const gateway = await limited({ perTenantPerMinute: 1 }, { acme: { requestsPerMinute: 2 } });
    const status = async (claims: object) =>
      (
        await gateway.fetch('/api/v1/x', {
          headers: { authorization: `Bearer ${await signJwt({ ...claims })}` },
        })
      ).status;
    expect([
      await status({ hostId: 'a' }),
      await status({ hostId: 'b' }),
      await status({ hostId: 'c' }),
    ]).toEqual([200, 200, 429]);
    const other = { namespaceId: 'other' };
    expect([await status({ hostId: 'a', ...other }), await status({ hostId: 'b', ...other })]).toEqual([
      200, 429,
    ]);
  });

  test('per address', async () => {
    const gateway = await limited({ perIpPerMinute: 1 });
    expect((await gateway.fetch('/api/v1/x', { headers: CI_HEADERS })).status).toBe(200);
    const token = await signJwt({});
    expect((await gateway.fetch('/api/v1/x', { headers: { authorization: `Bearer ${token}` } })).status).toBe(
      429,
    );
  });

  test('apply to the gateway’s own endpoints, and not to failed authentication', async () => {
    const gateway = await limited({ perTokenPerMinute: 1 });
    for (let i = 0; i < 3; i++) expect((await gateway.fetch('/api/v1/x')).status).toBe(401);
    await asBearer(gateway, CI_TOKEN)(listHosts, { query: {} });
    await expect(asBearer(gateway, CI_TOKEN)(listHosts, { query: {} })).rejects.toMatchObject({
      code: 'RATE_LIMIT_EXCEEDED',
    });
    gateway.clock.advance(minutes(1));
    await asBearer(gateway, CI_TOKEN)(listHosts, { query: {} });
  });

  test('are off by default', async () => {
    const gateway = await startGateway();
    const response = await gateway.fetch('/api/v1/x', { headers: CI_HEADERS });
    expect(response.headers.get('ratelimit-limit')).toBeNull();
  });
});

describe('pages of other origins', () => {
  const PAGE = { origin: 'https://studio.example' };
  const start = () =>
    startGateway({ gateway: { staticTokens, cors: { origins: ['https://studio.example'] } } });

  test('a configured origin may send preflights and calls, and reads errors too', async () => {
    const gateway = await start();
    const asked = await gateway.fetch('/api/v1/x', {
      method: 'OPTIONS',
      headers: {
        ...PAGE,
        'access-control-request-method': 'DELETE',
        'access-control-request-headers': 'authorization',
      },
    });
    expect(asked.status).toBe(204);
    expect(asked.headers.get('access-control-allow-origin')).toBe(PAGE.origin);
    expect(asked.headers.get('access-control-allow-methods')).toContain('DELETE');
    expect(asked.headers.get('access-control-allow-headers')).toContain('authorization');
    expect(gateway.upstream.seen).toEqual([]);
    for (const [headers, status] of [
      [{ ...PAGE, ...CI_HEADERS }, 200],
      [PAGE, 401],
    ] as const) {
      const called = await gateway.fetch('/api/v1/x', { headers });
      expect(called.status).toBe(status);
      expect(called.headers.get('access-control-allow-origin')).toBe(PAGE.origin);
      expect(called.headers.get('vary')).toBe('origin');
      expect(called.headers.get('access-control-allow-credentials')).toBeNull();
    }
    const own = await gateway.fetch('/health', { headers: PAGE });
    expect(own.headers.get('access-control-allow-origin')).toBe(PAGE.origin);
  });

  test.each(['https://evil.example', 'null', 'https://studio.example.evil.example', 'http://studio.example'])(
    'not %s',
    async (origin) => {
      const gateway = await start();
      const preflight = { origin, 'access-control-request-method': 'GET' };
      const asked = await gateway.fetch('/api/v1/x', { method: 'OPTIONS', headers: preflight });
      expect(asked.headers.get('access-control-allow-origin')).toBeNull();
      const called = await gateway.fetch('/api/v1/x', { headers: { origin, ...CI_HEADERS } });
      expect(called.headers.get('access-control-allow-origin')).toBeNull();
      expect(called.headers.get('vary')).toBe('origin');
    },
  );
});

describe('host names of a gateway that listens on loopback', () => {
  const status = async (gateway: { url: string }, host: string, path = '/health') => {
    const { port } = new URL(gateway.url);
    const { request } = await import('node:http');
    return new Promise<number>((resolve, reject) => {
      request(
        { port, host: '127.0.0.1', path, headers: { host, ...CI_HEADERS }, agent: false },
        (response) => {
          response.resume();
          resolve(response.statusCode!);
        },
      )
        .on('error', reject)
        .end();
    });
  };

  test('its own names are answered, others are 403: DNS rebinding does not reach it', async () => {
    const gateway = await startGateway();
    for (const host of [
      'localhost',
      'localhost:4000',
      '127.0.0.1',
      '127.9.9.9:1',
      '[::1]:4000',
      'svc.localhost',
    ]) {
      expect([host, await status(gateway, host)]).toEqual([host, 200]);
    }
    for (const host of [
      'evil.example',
      '127.0.0.1.evil.example',
      'localhost.evil.example',
      '192.168.0.1',
      'notlocalhost',
    ]) {
      expect([host, await status(gateway, host)]).toEqual([host, 403]);
      expect([host, await status(gateway, host, '/api/v1/x')]).toEqual([host, 403]);
    }
    expect(gateway.upstream.seen).toEqual([]);
  });

  test('allowedHosts and the public URL extend the names', async () => {
    const gateway = await startGateway({
      gateway: { staticTokens, allowedHosts: ['svc.internal'], publicUrl: 'https://hooks.example.com' },
    });
    for (const host of ['svc.internal', 'svc.internal:8080', 'hooks.example.com'])
      expect(await status(gateway, host)).toBe(200);
  });
});

test('metrics and log name routes by pattern, never by path', async () => {
  const gateway = await startGateway();
  await rawGet(gateway, '/api/v1/some/secret-id?q=1', [['authorization', `Bearer ${CI_TOKEN}`]]);
  await gateway.fetch('/api/v1/some/secret-id');
  const metrics = await (await gateway.fetch('/metrics')).text();
  expect(metrics).toContain(
    'svc_http_requests_total{service="gateway",method="GET",route="/api/v1/*",status="200"} 1',
  );
  expect(metrics).toContain(
    'svc_http_requests_total{service="gateway",method="GET",route="/api/v1/*",status="401"} 1',
  );
  expect(metrics).toContain(
    'svc_gateway_upstream_requests_total{service="gateway",upstream="rest",status="200"} 1',
  );
  expect(metrics).not.toContain('secret-id');
  const lines = gateway.logs.lines.filter(({ layer }) => layer === 'http');
  expect(lines[0]).toMatchObject({ message: 'GET /api/v1/* 200', tenantId: 'acme' });
  expect(JSON.stringify(lines)).not.toContain('secret-id');
});

test('only an administrator may name another namespace', async () => {
  const gateway = await startGateway({ gateway: { staticTokens, admins: ['root'] } });
  const call = async (hostId: string) => {
    const authorization = `Bearer ${await signJwt({ hostId })}`;
    return (await gateway.fetch('/api/v1/x', { headers: { authorization, 'x-svc-namespace': 'other' } }))
      .status;
  };
  expect(await call('root')).toBe(200);
  expect(gateway.upstream.seen[0]?.headers['x-tenant-id']).toBe('other');
  expect(await call('nobody')).toBe(403);
  expect(gateway.upstream.seen).toHaveLength(1);
});

test("the gateway's own endpoints follow the same rule and create records in that namespace", async () => {
  const gateway = await startGateway({ gateway: { staticTokens, admins: ['root'] } });
  const host = { name: 'builder', capabilities: [], publicKey: Buffer.alloc(32, 1).toString('base64') };
  for (const [path, given] of [
    ['/api/v1/clients', { name: 'nightly' }],
    ['/hosts/register', host],
  ] as const) {
    const create = async (hostId: string, namespace: string) => {
      const authorization = `Bearer ${await signJwt({ hostId })}`;
      const headers = { authorization, 'x-svc-namespace': namespace, 'content-type': 'application/json' };
      const response = await gateway.fetch(path, { method: 'POST', headers, body: JSON.stringify(given) });
      return [response.status, ((await response.json()) as { namespaceId?: string }).namespaceId];
    };
    expect(await create('root', 'other')).toEqual([201, 'other']);
    expect(await create('root', '../../other')).toEqual([400, undefined]);
    expect(await create('nobody', 'other')).toEqual([403, undefined]);
  }
});

test('an upgrade to an unsupported protocol is declined with an ordinary answer', async () => {
  const gateway = await startGateway();
  const { status } = await rawGet(gateway, '/api/v1/x', [
    ['authorization', `Bearer ${CI_TOKEN}`],
    ['Connection', 'Upgrade, HTTP2-Settings'],
    ['Upgrade', 'h2c'],
    ['HTTP2-Settings', 'AAMAAABkAAQCAAAAAAIAAAAA'],
  ]);
  expect(status).toBe(200);
  const { headers } = gateway.upstream.seen[0]!;
  expect([headers.upgrade, headers['http2-settings']]).toEqual([undefined, undefined]);
});

test.each([
  'X-Forwarded-For',
  'X-Forwarded-Host',
  'X-Forwarded-Proto',
  'X-Forwarded-Prefix',
  'Forwarded',
  'Via',
  'X-Real-IP',
  'X-Client-IP',
  'True-Client-IP',
  'CF-Connecting-IP',
  'X-Original-URL',
  'X-Envoy-External-Address',
])('metrics of a loopback call that a proxy marks with %s require a token', async (header) => {
  const gateway = await startGateway();
  const marked = { [header]: '127.0.0.1' };
  expect((await gateway.fetch('/metrics')).status).toBe(200);
  expect((await gateway.fetch('/metrics', { headers: marked })).status).toBe(401);
  expect((await gateway.fetch('/metrics', { headers: { ...marked, ...CI_HEADERS } })).status).toBe(200);
});
