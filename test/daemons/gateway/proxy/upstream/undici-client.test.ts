import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { createPeers } from '../../../../../src/daemons/peers.ts';
import { settled } from '../../../../support/settled.ts';
import { startUpstream } from '../../support/echo-upstream.ts';
import { exchangeBytes, rawGet } from '../../support/raw-http.ts';
import { CI_HEADERS, CI_TOKEN, startGateway } from '../../support/start-gateway.ts';

const CI_PAIR: [string, string] = ['authorization', `Bearer ${CI_TOKEN}`];
const staticTokens = { [CI_TOKEN]: { hostId: 'ci', namespaceId: 'acme' } };

/** An upstream under a name that is not this machine's own as far as the gateway can tell, so that it is called over undici. */
async function withFarUpstream(
  answer?: Parameters<typeof startUpstream>[0],
  settings: Record<string, unknown> = {},
) {
  const upstream = await startUpstream(answer);
  const url = upstream.url.replace('127.0.0.1', '0.0.0.0');
  return startGateway({
    upstream,
    peers: createPeers(),
    gateway: { staticTokens, upstreams: { rest: { url: `${url}/base` } }, ...settings },
  });
}

test('gets the same request and returns the same answer, below its base path', async () => {
  const gateway = await withFarUpstream((req, res, body) => {
    res.writeHead(201, {
      'X-Request-ID': 'theirs',
      'Set-Cookie': ['a=1', 'b=2'],
      Connection: 'close, X-Hop',
      'X-Hop': '1',
    });
    res.end(`${req.method} ${req.url} ${body}`);
  });
  const response = await gateway.fetch('/api/v1/a%2Fb?x=1', {
    method: 'POST',
    body: 'hello',
    headers: { ...CI_HEADERS, 'x-request-id': 'mine', 'x-tenant-id': 'evil' },
  });
  expect(response.status).toBe(201);
  expect(await response.text()).toBe('POST /base/api/v1/a%2Fb?x=1 hello');
  expect(response.headers.get('x-request-id')).toBe('mine');
  expect(response.headers.get('x-hop')).toBeNull();
  expect(response.headers.getSetCookie()).toEqual(['a=1', 'b=2']);
  expect(gateway.upstream.seen[0]?.headers).toMatchObject({ 'x-tenant-id': 'acme', 'x-request-id': 'mine' });
  expect(gateway.upstream.seen[0]?.headers.authorization).toBeUndefined();
});

test('chunked bodies arrive complete; too large ones are 413', async () => {
  const gateway = await withFarUpstream(undefined, { bodyLimitBytes: 100 });
  const head = `POST /api/v1/x HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer ${CI_TOKEN}\r\ntransfer-encoding: chunked\r\n\r\n`;
  expect(await exchangeBytes(gateway, `${head}3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n`)).toMatch(/^HTTP\/1\.1 200/);
  expect(gateway.upstream.seen[0]?.body).toBe('abcde');
  const large = 'x'.repeat(101);
  expect(await exchangeBytes(gateway, `${head}65\r\n${large}\r\n0\r\n\r\n`)).toMatch(/^HTTP\/1\.1 413/);
});

test('HEAD, 204 and an empty body', async () => {
  const gateway = await withFarUpstream((req, res) => {
    res
      .writeHead(req.url?.endsWith('204') ? 204 : 200, req.method === 'HEAD' ? { 'content-length': '7' } : {})
      .end();
  });
  const head = await gateway.fetch('/api/v1/x', { method: 'HEAD', headers: CI_HEADERS });
  expect([head.status, head.headers.get('content-length')]).toEqual([200, '7']);
  expect((await rawGet(gateway, '/api/v1/204', [CI_PAIR])).status).toBe(204);
  expect(await rawGet(gateway, '/api/v1/x', [CI_PAIR])).toMatchObject({ status: 200, body: '' });
});

test('a slow reader applies back-pressure to the upstream', async () => {
  const megabyte = Buffer.alloc(1024 * 1024, 'x');
  let written = 0;
  const gateway = await withFarUpstream(async (_req, res) => {
    for (let i = 0; i < 64; i++) {
      written++;
      if (!res.write(megabyte)) await new Promise((resolve) => res.once('drain', resolve));
    }
    res.end();
  });
  const response = await gateway.fetch('/api/v1/x', { headers: CI_HEADERS });
  const reader = response.body!.getReader();
  let read = (await reader.read()).value!.length;
  expect(await settled(() => written)).toBeLessThan(50);
  for (let part = await reader.read(); !part.done; part = await reader.read()) read += part.value.length;
  expect(read).toBe(64 * megabyte.length);
});

test('silent: 504; unreachable: 502; a client that disconnects ends the call', async () => {
  const silent = await withFarUpstream(() => {}, { upstreamTimeoutMs: 1000 });
  expect((await silent.fetch('/api/v1/x', { headers: CI_HEADERS })).status).toBe(504);
  const gone = await startGateway({
    gateway: { staticTokens, upstreams: { rest: { url: 'http://0.0.0.0:1' } } },
  });
  expect((await gone.fetch('/api/v1/x', { headers: CI_HEADERS })).status).toBe(502);

  const left = Promise.withResolvers<void>();
  const gateway = await withFarUpstream((req) => req.on('close', () => left.resolve()));
  const abort = new AbortController();
  const call = gateway
    .fetch('/api/v1/x', { headers: CI_HEADERS, signal: abort.signal })
    .catch(() => 'aborted');
  while (gateway.upstream.seen.length === 0) await sleep(5);
  abort.abort();
  expect(await call).toBe('aborted');
  await left.promise;
});
