import { expect, test } from 'vitest';
import { exchangeBytes, rawGet } from '../support/raw-http.ts';
import { CI_HEADERS, CI_TOKEN, startGateway } from '../support/start-gateway.ts';

const AUTHORIZATION: [string, string] = ['authorization', `Bearer ${CI_TOKEN}`];

/** Each path with its answer: the path that the upstream sees, or the status of the gateway's own answer. */
const PATHS: Array<[path: string, answer: string | number]> = [
  ['/api/v1/plugins/x?y=1', '/api/v1/plugins/x?y=1'],
  ['/api/v1/workflows/runs/1', '/api/v1/workflows/runs/1'],
  ['/workflows/runs/1/cancel', '/workflows/runs/1/cancel'],
  ['/api/v1/%77orkflows/x', '/api/v1/%77orkflows/x'],
  ['/api/v1/a/b%2Fc', '/api/v1/a/b%2Fc'],
  ['/api/v1/a//b', '/api/v1/a//b'],
  ['/api/v1/', '/api/v1/'],
  ['/api/v1', '/api/v1'],
  ['/api/v1/tokens/x/y', '/api/v1/tokens/x/y'],
  ['http://localhost/api/v1/x', '/api/v1/x'],
  ['/api/v1/health', 200],
  ['/api/v1/whoami', 200],
  ['/api/v1/%77hoami', 200],
  ['/api/v1/tokens/x', 405],
  ['/api/v1/%74okens/x', 405],
  ['/api/v1/a/../b', 400],
  ['/api/v1/a/%2e%2e/b', 400],
  ['/api/v1/a%zz', 400],
  ['/api/v1/%ff', 400],
  ['/api/v2/x', 404],
  ['/API/v1/x', 404],
];

test('each path is forwarded unchanged or answered by the gateway', async () => {
  const gateway = await startGateway();
  const answers: typeof PATHS = [];
  for (const [path] of PATHS) {
    gateway.upstream.seen.length = 0;
    const { status, reply } = await rawGet(gateway, path, [AUTHORIZATION]);
    answers.push([path, gateway.upstream.seen[0]?.url ?? status]);
    expect(reply['x-request-id']).toMatch(/^[0-9a-f-]{36}$/);
  }
  expect(answers).toEqual(PATHS);
});

test('a foreign namespace or an unknown Host never reaches the upstream', async () => {
  const gateway = await startGateway();
  const ask = async (...header: [string, string]) =>
    (await rawGet(gateway, '/api/v1/x', [AUTHORIZATION, header])).status;
  expect(await ask('x-svc-namespace', 'other')).toBe(403);
  expect(await ask('host', 'evil.example')).toBe(400);
  expect(gateway.upstream.seen).toEqual([]);
});

test('any refusal is counted under the pattern of its route', async () => {
  const gateway = await startGateway();
  await rawGet(gateway, '/api/v1/a/../b', [AUTHORIZATION]);
  await rawGet(gateway, '/api/v1/x', []);
  const metrics = await (await gateway.fetch('/metrics')).text();
  for (const status of [400, 401]) {
    expect(metrics).toContain(
      `svc_http_requests_total{service="gateway",method="GET",route="/api/v1/*",status="${status}"} 1`,
    );
  }
});

test('calls leave an access line with their ids and count under the pattern of the route', async () => {
  const gateway = await startGateway();
  const ids = { 'x-request-id': 'mine', 'x-trace-id': 'my-trace' };
  for (const extra of [{}, {}, { origin: 'https://elsewhere.example' }])
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

test('a revoked token is refused on the next call', async () => {
  const gateway = await startGateway();
  const call = async () => (await gateway.fetch('/api/v1/x', { headers: CI_HEADERS })).status;
  expect([await call(), await call()]).toEqual([200, 200]);
  await gateway.services.revocations.revokeHost('ci');
  expect(await call()).toBe(401);
});

test('repeated Host or Authorization headers, and methods not proxied, are refused as on other routes', async () => {
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
