import type { AddressInfo } from 'node:net';
import fc from 'fast-check';
import fastify from 'fastify';
import { expect, onTestFinished, test } from 'vitest';
import { createLanes } from '../../../src/daemons/gateway/proxy/lanes.ts';
import type { Upstream } from '../../../src/daemons/gateway/proxy/upstreams.ts';
import { exchangeBytes, rawGet } from './support/raw-http.ts';
import { CI_HEADERS, CI_TOKEN, startGateway } from './support/start-gateway.ts';

const upstream = (name: Upstream['name'], ...prefixes: string[]): Upstream => ({
  name,
  prefixes,
  websocket: false,
  basePath: '',
  origin: () => 'http://127.0.0.1:1',
});
const UPSTREAMS = [upstream('rest', '/api/v1'), upstream('workflow', '/api/v1/workflows', '/workflows')];
const OWN = ['/health', '/api/v1/health', '/api/v1/tokens/:jti', '/api/v1/marketplace/plugins/:id/package'];
const WILDCARDS = UPSTREAMS.flatMap(({ prefixes }) => prefixes.flatMap((prefix) => [prefix, `${prefix}/*`]));

test('a lane is what the router would have chosen, or nothing', async () => {
  const server = fastify();
  for (const url of [...OWN, ...WILDCARDS])
    server.get(url, (request, reply) => reply.send(request.routeOptions.url));
  await server.listen({ host: '127.0.0.1', port: 0 });
  onTestFinished(() => server.close());
  const url = `http://127.0.0.1:${(server.server.address() as AddressInfo).port}`;

  const laneOf = createLanes(UPSTREAMS, [...OWN, ...WILDCARDS]);
  const names = ['api', 'v1', 'workflows', 'tokens', 'marketplace', 'plugins', 'health', 'runs', 'x-y'];
  const odd = [
    '',
    '%77orkflows',
    'Workflows',
    'tokens%2Fx',
    'a.b',
    '~',
    '*',
    ':jti',
    'tokens;x',
    'x'.repeat(300),
  ];
  const path = fc
    .tuple(
      fc.constantFrom('', '/api', '/api/v1', '/api/v1', '/api/v1/workflows', '/workflows'),
      fc.array(fc.constantFrom(...names, ...odd), { maxLength: 4 }),
      fc.constantFrom('', '?', '?a=/workflows/b', '/'),
    )
    .map(([start, segments, end]) => `${start}/${segments.join('/')}${end}`);
  let taken = 0;
  await fc.assert(
    fc.asyncProperty(path, async (target) => {
      const lane = laneOf(target);
      if (!lane) return;
      taken++;
      expect([target, (await rawGet({ url }, target, [])).body]).toEqual([target, lane.route]);
    }),
    { numRuns: 400 },
  );
  expect(taken).toBeGreaterThan(50);
});

test('everyday calls have a lane; a prefix below which a route goes on with a parameter has none', () => {
  const laneOf = createLanes(UPSTREAMS, [...OWN, ...WILDCARDS]);
  expect(laneOf('/api/v1/plugins/acme/items?page=1')).toMatchObject({ route: '/api/v1/*' });
  expect(laneOf('/api/v1/workflows/runs')).toMatchObject({ route: '/api/v1/workflows/*' });
  for (const url of ['/api/v1', '/api/v1/workflows', '/api/v1/tokens/x', '/health', '*', 'http://h/api/v1/x'])
    expect(laneOf(url)).toBeUndefined();
  expect(createLanes(UPSTREAMS, ['/api/v1/:name/own'])('/api/v1/plugins')).toBeUndefined();
});

/** With an Origin, the framework's router serves. */
const THROUGH_ROUTER: [string, string] = ['origin', 'https://elsewhere.example'];

test('whatever is asked, it is answered the same past the framework and through it', async () => {
  const gateway = await startGateway();
  await gateway.fetch('/api/v1/x', { headers: CI_HEADERS });
  const headers: [string, string][] = [['authorization', `Bearer ${CI_TOKEN}`]];
  for (const path of [
    '/api/v1/plugins/x?y=1',
    '/api/v1/workflows/runs/1',
    '/workflows/runs/1/cancel',
    '/api/v1/tokens',
    '/api/v1/health',
    '/api/v1/%77orkflows/x',
    '/api/v1/a/../b',
    '/api/v1/a/%2e%2e/b',
    '/api/v1/a%zz',
    '/api/v1/a/%zz',
    '/api/v1/a/b%2Fc',
    '/api/v1/',
    '/api/v1',
    '/api/v2/x',
  ]) {
    for (const more of [[], [['x-svc-namespace', 'other']], [['host', 'evil.example']]] as [
      string,
      string,
    ][][]) {
      const seen = async (extra: [string, string][]) => {
        gateway.upstream.seen.length = 0;
        const { status, reply, body } = await rawGet(gateway, path, [...headers, ...more, ...extra]);
        const forwarded = gateway.upstream.seen.map(({ method, url, rawHeaders }) => [
          method,
          url,
          rawHeaders.filter((_, i) => i % 2 === 0 && rawHeaders[i] !== 'origin').toSorted(),
        ]);
        const names = Object.keys(reply).filter((name) => name !== 'vary');
        return [path, more, status, names.toSorted(), JSON.parse(body).error?.code, forwarded];
      };
      expect(await seen([])).toEqual(await seen([THROUGH_ROUTER]));
    }
  }
});

test('both leave an access line with their ids and count under the pattern of the route', async () => {
  const gateway = await startGateway();
  const ids = { 'x-request-id': 'mine', 'x-trace-id': 'my-trace' };
  for (const extra of [{}, {}, { origin: THROUGH_ROUTER[1] }])
    await gateway.fetch('/api/v1/x', { headers: { ...CI_HEADERS, ...ids, ...extra } });
  await gateway.fetch('/api/v1/x', { headers: CI_HEADERS });
  const lines = gateway.logs.lines.filter(({ message }) => message === 'GET /api/v1/* 200');
  expect(lines).toHaveLength(4);
  for (const line of lines) {
    expect(line).toMatchObject({ tenantId: 'acme' });
    expect(line.spanId).toMatch(/^[0-9a-f]{16}$/);
  }
  expect(lines.slice(0, 3).map(({ requestId, traceId }) => [requestId, traceId])).toEqual(
    Array.from({ length: 3 }, () => ['mine', 'my-trace']),
  );
  expect(lines[3]!.traceId).toBe(String(lines[3]!.requestId).replaceAll('-', ''));
  expect(await (await gateway.fetch('/metrics')).text()).toContain(
    'svc_http_requests_total{service="gateway",method="GET",route="/api/v1/*",status="200"} 4',
  );
});

test('a token that was withdrawn is refused on the next call', async () => {
  const gateway = await startGateway();
  const call = async () => (await gateway.fetch('/api/v1/x', { headers: CI_HEADERS })).status;
  expect([await call(), await call()]).toEqual([200, 200]);
  await gateway.services.revocations.revokeHost('ci');
  expect(await call()).toBe(401);
});

test('two Hosts, two Authorizations, or a method that is not proxied: refused as everywhere', async () => {
  const gateway = await startGateway();
  await gateway.fetch('/api/v1/x', { headers: CI_HEADERS });
  gateway.upstream.seen.length = 0;
  const auth = `authorization: Bearer ${CI_TOKEN}\r\n`;
  const send = (start: string, rest: string) => exchangeBytes(gateway, `${start} HTTP/1.1\r\n${rest}\r\n`);
  expect(await send('GET /api/v1/x', `host: localhost\r\nhost: localhost\r\n${auth}`)).toMatch(
    /^HTTP\/1\.1 400/,
  );
  expect(await send('GET /api/v1/x', `host: localhost\r\n${auth}${auth}`)).toMatch(/^HTTP\/1\.1 401/);
  expect(await send('GET /api/v1/x', auth)).toMatch(/^HTTP\/1\.1 400/);
  expect(await send('TRACE /api/v1/x', `host: localhost\r\n${auth}`)).toMatch(/^HTTP\/1\.1 (?:404|405)/);
  expect(gateway.upstream.seen).toEqual([]);
});
