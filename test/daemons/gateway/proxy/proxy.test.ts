import { createServer } from 'node:http';
import { type AddressInfo, connect, createServer as createTcpServer, type Server } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, onTestFinished, test } from 'vitest';
import { createPeers } from '../../../../src/daemons/peers.ts';
import { serviceKey } from '../../../../src/kit/security/keys.ts';
import { TEST_KEYS } from '../../../support/daemon.ts';
import { answerWhileSending } from '../../../support/late-body.ts';
import { printedRandom } from '../../../support/random.ts';
import { settled } from '../../../support/settled.ts';
import { startUpstream } from '../support/echo-upstream.ts';
import { exchangeBytes, rawGet } from '../support/raw-http.ts';
import { CI_HEADERS, CI_TOKEN, startGateway } from '../support/start-gateway.ts';

const AUTH = `authorization: Bearer ${CI_TOKEN}\r\n`;
const CI_PAIR: [string, string] = ['authorization', `Bearer ${CI_TOKEN}`];

/** Sends a raw request line and headers with a good token, and returns the raw answer. */
const send = (gateway: { url: string }, start: string, rest = '') =>
  exchangeBytes(gateway, `${start} HTTP/1.1\r\nhost: localhost\r\n${AUTH}${rest}`);

/** Listens on a free port until the test ends; its URL. */
async function listening(server: Server): Promise<string> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void server.close());
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

describe('requests to the upstream', () => {
  test('identity headers come only from the gateway, in whatever spelling a client tries', async () => {
    const gateway = await startGateway();
    await rawGet(gateway, '/api/v1/x', [
      CI_PAIR,
      ['X-Tenant-ID', 'evil'],
      ['x_tenant_id', 'evil'],
      ['X-Svc-Host_ID', 'evil'],
      ['X-SVC-anything', 'evil'],
      ['X-Internal-Secret', 'evil'],
      ['x_internal_secret', 'evil'],
      ['X-Forwarded-For', '203.0.113.1'],
      ['Forwarded', 'for=203.0.113.1'],
      ['X-Real-IP', '203.0.113.1'],
    ]);
    const { headers, rawHeaders } = gateway.upstream.seen[0]!;
    expect(JSON.stringify(rawHeaders)).not.toMatch(/evil|203\.0\.113/);
    expect(headers).toMatchObject({
      'x-tenant-id': 'acme',
      'x-svc-host-id': 'ci',
      'x-svc-service-key': serviceKey(TEST_KEYS.internalSecret),
      'x-forwarded-for': '127.0.0.1',
      'x-forwarded-proto': 'http',
    });
    expect(headers.authorization).toBeUndefined();
    expect(headers['x-internal-secret']).toBeUndefined();
  });

  test('hop-by-hop headers are removed, also those named in Connection, identity headers included', async () => {
    const gateway = await startGateway();
    await rawGet(gateway, '/api/v1/x', [
      CI_PAIR,
      ['Connection', 'close, X-Secret-Hop, X-Tenant-ID'],
      ['X-Secret-Hop', 'x'],
      ['TE', 'trailers'],
      ['Keep-Alive', 'timeout=5'],
      ['Proxy-Authorization', 'Basic x'],
      ['X-Kept', 'yes'],
    ]);
    const { headers } = gateway.upstream.seen[0]!;
    for (const name of ['x-secret-hop', 'te', 'keep-alive', 'proxy-authorization'])
      expect(headers[name]).toBeUndefined();
    expect(headers).toMatchObject({ 'x-kept': 'yes', 'x-tenant-id': 'acme' });
  });

  test('the client address comes from a trusted proxy', async () => {
    const gateway = await startGateway({ gateway: { trustedProxies: ['127.0.0.1'] } });
    await rawGet(gateway, '/api/v1/x', [CI_PAIR, ['X-Forwarded-For', '203.0.113.7']]);
    expect(gateway.upstream.seen[0]?.headers['x-forwarded-for']).toBe('203.0.113.7');
  });

  test('valid ids are kept, others generated, and both are returned', async () => {
    const gateway = await startGateway();
    const trace = '4bf92f3577b34da6a3ce929d0e0e4736';
    const traceparent = `00-${trace}-00f067aa0ba902b7-01`;
    const kept = await rawGet(gateway, '/api/v1/x', [
      CI_PAIR,
      ['X-Request-ID', 'abc'],
      ['traceparent', traceparent],
    ]);
    expect(kept.reply['x-request-id']).toBe('abc');
    expect(gateway.upstream.seen[0]?.headers).toMatchObject({
      'x-request-id': 'abc',
      'x-trace-id': trace,
      // The trace goes on; its parent is the gateway's own span now.
      traceparent: expect.stringMatching(new RegExp(`^00-${trace}-(?!00f067aa0ba902b7)[0-9a-f]{16}-01$`)),
    });

    await rawGet(gateway, '/api/v1/x', [CI_PAIR, ['X-Request-ID', 'x'.repeat(129)]]);
    const made = gateway.upstream.seen[1]!.headers;
    expect(made['x-request-id']).toMatch(/^[0-9a-f-]{36}$/);
    expect(made['x-trace-id']).toMatch(/^[0-9a-f]{32}$/);
    expect(made.traceparent).toMatch(new RegExp(`^00-${made['x-trace-id']}-[0-9a-f]{16}-01$`));

    await rawGet(gateway, '/api/v1/x', [CI_PAIR, ['X-Trace-ID', 'my-own-trace']]);
    const own = gateway.upstream.seen[2]!.headers;
    expect(own['x-trace-id']).toBe('my-own-trace');
    expect(own.traceparent).toMatch(/^00-[0-9a-f]{32}-[0-9a-f]{16}-01$/);
  });

  test.each([
    '/api/v1/plugins/%40acme%2Forders/items',
    '/api/v1/a%20b/%E2%82%AC?q=%2F&x=a+b&empty=',
    '/api/v1/a//b/',
    '/api/v1/x?next=../../etc&u=http://h/../x',
    '/api/v1/file..name/..data/...',
  ])('the path %s byte for byte', async (path) => {
    const gateway = await startGateway();
    expect((await rawGet(gateway, path, [CI_PAIR])).status).toBe(200);
    expect(gateway.upstream.seen[0]?.url).toBe(path);
  });

  test('bodies of known and unknown length, and the methods', async () => {
    const gateway = await startGateway();
    for (const method of ['POST', 'PUT', 'PATCH', 'DELETE']) {
      const response = await gateway.fetch('/api/v1/x', {
        method,
        body: `{"m":"${method}"}`,
        headers: CI_HEADERS,
      });
      expect(await response.json()).toMatchObject({ method, body: `{"m":"${method}"}` });
    }
    const chunked = await send(
      gateway,
      'POST /api/v1/x',
      'transfer-encoding: chunked\r\n\r\n3\r\nabc\r\n2;ext=1\r\nde\r\n0\r\ntrailer: dropped\r\n\r\n',
    );
    expect(chunked).toMatch(/^HTTP\/1\.1 200/);
    const seen = gateway.upstream.seen.at(-1)!;
    expect(seen).toMatchObject({ body: 'abcde', headers: { 'transfer-encoding': 'chunked' } });
    expect(seen.headers['content-length']).toBeUndefined();
    expect(JSON.stringify(seen.rawHeaders)).not.toContain('trailer');
  });

  test('the longest prefix decides, for other spellings of the path too', async () => {
    const workflow = await startUpstream();
    const rest = await startUpstream();
    const gateway = await startGateway({
      upstream: rest,
      peers: createPeers({ rest: rest.url, workflow: workflow.url }),
    });
    const paths = [
      '/api/v1/workflows/runs',
      '/api/v1/workflows',
      '/workflows/runs/1/cancel',
      '/api/v1/%77orkflows/runs',
    ];
    for (const path of paths) expect((await rawGet(gateway, path, [CI_PAIR])).status).toBe(200);
    expect(workflow.seen.map(({ url }) => url)).toEqual(paths);
    await rawGet(gateway, '/api/v1/workflowsX', [CI_PAIR]);
    expect(rest.seen.map(({ url }) => url)).toEqual(['/api/v1/workflowsX']);
  });
});

describe('responses to the client', () => {
  test('status, headers and body of the upstream, hop-by-hop and foreign CORS headers left out', async () => {
    const upstream = await startUpstream((_req, res) => {
      res.writeHead(418, {
        'content-type': 'text/plain',
        'x-kept': 'yes',
        'keep-alive': 'timeout=1',
        'set-cookie': ['a=1', 'b=2'],
        'access-control-allow-origin': '*',
        'x-request-id': 'theirs',
      });
      res.end('short and stout');
    });
    const gateway = await startGateway({ upstream });
    const { status, reply, body } = await rawGet(gateway, '/api/v1/x', [CI_PAIR, ['X-Request-ID', 'mine']]);
    expect({ status, body }).toEqual({ status: 418, body: 'short and stout' });
    expect(reply).toMatchObject({ 'x-kept': 'yes', 'x-request-id': 'mine', 'set-cookie': ['a=1', 'b=2'] });
    expect(reply['access-control-allow-origin']).toBeUndefined();
    expect(reply.via).toBeUndefined();
  });

  test.each([
    ['HEAD', 200, 'content-length: 7'],
    ['GET', 204, ''],
    ['GET', 304, ''],
  ])('%s %i has no body, and the connection stays open', async (method, status, header) => {
    const upstream = await startUpstream((_req, res) => {
      res.writeHead(status, status === 200 ? { 'content-length': '7' } : { etag: '"x"' }).end();
    });
    const gateway = await startGateway({ upstream });
    const request = `${method} /api/v1/x HTTP/1.1\r\nhost: localhost\r\n${AUTH}\r\n`;
    const answer = await exchangeBytes(gateway, request + request);
    expect(answer.match(/HTTP\/1\.1 /g)).toHaveLength(2);
    expect(answer.split('HTTP/1.1 ')[1]).toMatch(new RegExp(`^${status} `));
    expect(answer).toContain(header);
    expect(answer.split('\r\n\r\n')[1]).toMatch(/^HTTP|^$/);
  });

  test('a stream is forwarded unchanged and complete, and a slow reader applies back-pressure to the upstream', async () => {
    const megabyte = Buffer.alloc(1024 * 1024, 'x');
    let written = 0;
    const upstream = await startUpstream(async (_req, res) => {
      for (let i = 0; i < 64; i++) {
        written++;
        if (!res.write(megabyte)) await new Promise((resolve) => res.once('drain', resolve));
      }
      res.end();
    });
    const gateway = await startGateway({ upstream });
    const response = await gateway.fetch('/api/v1/x', { headers: CI_HEADERS });
    const reader = response.body!.getReader();
    let read = (await reader.read()).value!.length;
    expect(await settled(() => written)).toBeLessThan(50);
    for (let part = await reader.read(); !part.done; part = await reader.read()) read += part.value.length;
    expect(read).toBe(64 * megabyte.length);
  });

  test('events are forwarded one by one, not buffered', async () => {
    const upstream = await startUpstream((_req, res) => {
      res.writeHead(200, { 'content-type': 'text/event-stream' });
      res.write('data: 1\n\n');
    });
    const gateway = await startGateway({ upstream });
    const response = await gateway.fetch('/api/v1/x', { headers: CI_HEADERS });
    const reader = response.body!.getReader();
    const { value } = await reader.read();
    expect(Buffer.from(value!).toString()).toBe('data: 1\n\n');
    await reader.cancel();
  });

  test('an unreachable upstream: 502; a silent one: 504', async () => {
    const gone = await startGateway({
      peers: createPeers({ rest: 'http://127.0.0.1:1', workflow: 'http://127.0.0.1:1' }),
    });
    const refused = await gone.fetch('/api/v1/x', { headers: CI_HEADERS });
    expect(refused.status).toBe(502);
    expect(await refused.json()).toMatchObject({ error: { code: 'UPSTREAM_UNAVAILABLE' } });

    const silent = await startGateway({
      upstream: await startUpstream(() => {}),
      gateway: {
        upstreamTimeoutMs: 100,
        staticTokens: { [CI_TOKEN]: { hostId: 'ci', namespaceId: 'acme' } },
      },
    });
    const late = await silent.fetch('/api/v1/x', { headers: CI_HEADERS });
    expect(late.status).toBe(504);
    expect(await late.json()).toMatchObject({ error: { code: 'UPSTREAM_TIMEOUT' } });
    const metrics = await (await silent.fetch('/metrics')).text();
    expect(metrics).toContain(
      'svc_gateway_upstream_requests_total{service="gateway",upstream="rest",status="error"} 1',
    );
  });

  test('an upstream without a known address: 502 that says so', async () => {
    const gateway = await startGateway({ peers: createPeers() });
    const response = await gateway.fetch('/api/v1/x', { headers: CI_HEADERS });
    expect(response.status).toBe(502);
    expect(await response.json()).toMatchObject({
      error: { message: expect.stringContaining('svc status') },
    });
  });

  test('an answer cut short ends the connection instead of looking whole', async () => {
    const upstream = await startUpstream((_req, res) => {
      res.writeHead(200, { 'content-length': '100000' });
      res.write('x'.repeat(50_000), () => setTimeout(() => res.destroy(), 20));
    });
    const gateway = await startGateway({ upstream });
    const response = await gateway.fetch('/api/v1/x', { headers: CI_HEADERS });
    await expect(response.text()).rejects.toThrow();
  });

  test('a client that disconnects ends the upstream call', async () => {
    let closed: () => void;
    const left = new Promise<void>((resolve) => {
      closed = resolve;
    });
    const upstream = await startUpstream((req) => req.on('close', () => closed()));
    const gateway = await startGateway({ upstream });
    const abort = new AbortController();
    const call = gateway
      .fetch('/api/v1/x', { headers: CI_HEADERS, signal: abort.signal })
      .catch(() => 'aborted');
    while (upstream.seen.length === 0) await sleep(5);
    abort.abort();
    expect(await call).toBe('aborted');
    await left;
    await expect.poll(async () => (await gateway.fetch('/metrics')).text()).toContain('status="499"');
  });

  test('a client that disconnects within its body ends the upstream call', async () => {
    const [begun, closed] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const server = createServer((req) => {
      begun.resolve();
      req.on('close', () => closed.resolve());
    });
    const url = await listening(server);
    const gateway = await startGateway({ peers: createPeers({ rest: url }) });
    const { port, hostname } = new URL(gateway.url);
    const head = `POST /api/v1/x HTTP/1.1\r\nhost: localhost\r\n${AUTH}content-length: 100\r\n\r\n`;
    const client = connect(Number(port), hostname, () => client.write(`${head}half`));
    await begun.promise;
    client.destroy();
    await closed.promise;
  });
});

describe('a kept-alive connection that the upstream has just closed', () => {
  test('fails no call: a GET is sent again', async () => {
    let connections = 0;
    const upstream = await startUpstream((_req, res) => res.end('ok'));
    upstream.server.on('connection', () => {
      connections++;
    });
    const gateway = await startGateway({ upstream });
    for (let i = 0; i < 5; i++) {
      expect((await gateway.fetch('/api/v1/x', { headers: CI_HEADERS })).status).toBe(200);
      upstream.server.closeAllConnections();
    }
    expect(connections).toBeGreaterThan(3);
  });
});

describe('requests refused before they are forwarded', () => {
  test.each([
    ['/api/v1/../../health', 'a dot segment'],
    ['/api/v1/%2e%2e/secret', 'an encoded one'],
    ['/api/v1/.%2E/secret', 'a half-encoded one'],
    ['/api/v1/a/..%2f..%2fsecret', 'one before an encoded slash'],
    ['/api/v1/./x', 'a single dot'],
    ['/api/v1/..', 'one at the end'],
    ['/api/v1/..;a=b/secret', 'one with what some servers drop'],
    ['/api/v1/a#/b', 'a fragment'],
    ['/api/v1/a\\b', 'a backslash'],
    ['/api/v1/%zz', 'a malformed escape'],
    ['/api/v1/%', 'half an escape'],
    ['/api/v1/x%00y', 'an encoded NUL'],
  ])('%s (%s)', async (path) => {
    const gateway = await startGateway();
    const { status, body } = await rawGet(gateway, path, [CI_PAIR]);
    expect(status).toBe(400);
    expect(JSON.parse(body)).toMatchObject({ error: { code: 'VALIDATION_ERROR' } });
    expect(gateway.upstream.seen).toEqual([]);
  });

  test.each([
    ['both framings', 'content-length: 4\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n'],
    ['two lengths', 'content-length: 4\r\ncontent-length: 5\r\n\r\nabcd'],
    ['a signed length', 'content-length: +4\r\n\r\nabcd'],
    ['a list of lengths', 'content-length: 4, 4\r\n\r\nabcd'],
    ['a bad chunk size', 'transfer-encoding: chunked\r\n\r\nzz\r\nabcd\r\n'],
    ['a chunk longer than its size', 'transfer-encoding: chunked\r\n\r\n2\r\nabcd\r\n0\r\n\r\n'],
    ['a space before the colon', 'x-a : b\r\n\r\n'],
    ['a folded header', 'x-a: b\r\n c\r\n\r\n'],
    ['a NUL in a header', 'x-a: b\0c\r\n\r\n'],
    ['a bare line feed', 'x-a: b\nx-tenant-id: evil\r\n\r\n'],
    ['chunked twice', 'transfer-encoding: chunked\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n'],
    ['chunked not last', 'transfer-encoding: chunked, identity\r\n\r\n0\r\n\r\n'],
  ])('framing: %s is 400 or 501 and ends the connection', async (_name, rest) => {
    const gateway = await startGateway();
    const smuggled = `GET /api/v1/smuggled HTTP/1.1\r\nhost: localhost\r\n${AUTH}\r\n`;
    const answer = await send(gateway, 'POST /api/v1/x', rest + smuggled);
    expect(answer).toMatch(/^HTTP\/1\.1 (?:400|501|502)|^$/);
    expect(answer.match(/HTTP\/1\.1 \d\d\d/g)?.length ?? 0).toBeLessThanOrEqual(1);
    expect(gateway.upstream.seen.map(({ url }) => url)).not.toContain('/api/v1/smuggled');
    for (const { headers } of gateway.upstream.seen) expect(headers['x-tenant-id']).toBe('acme');
  });

  test('two Host headers', async () => {
    const gateway = await startGateway();
    expect(await send(gateway, 'GET /api/v1/x', 'host: other\r\n\r\n')).toMatch(/^HTTP\/1\.1 400/);
    expect(gateway.upstream.seen).toEqual([]);
  });

  test('headers over 16 KB: 431', async () => {
    const gateway = await startGateway();
    const answer = await send(gateway, 'GET /api/v1/x', `x-a: ${'x'.repeat(17_000)}\r\n\r\n`);
    expect(answer).toMatch(/^HTTP\/1\.1 431/);
    expect(answer).toContain('HEADERS_TOO_LARGE');
  });

  test('a body over the limit: 413, announced or not, and the connection ends', async () => {
    const gateway = await startGateway({
      gateway: { bodyLimitBytes: 1000, staticTokens: { [CI_TOKEN]: { hostId: 'ci', namespaceId: 'acme' } } },
    });
    const announced = await send(gateway, 'POST /api/v1/x', 'content-length: 1001\r\n\r\n');
    expect(announced).toMatch(/^HTTP\/1\.1 413[\s\S]*connection: close[\s\S]*PAYLOAD_TOO_LARGE/i);
    const chunk = `3e8\r\n${'x'.repeat(1000)}\r\n`;
    const counted = await send(
      gateway,
      'POST /api/v1/x',
      `transfer-encoding: chunked\r\n\r\n${chunk}${chunk}`,
    );
    expect(counted).toMatch(/^HTTP\/1\.1 413/);
    expect(gateway.upstream.seen).toEqual([]);
    const head = `POST /api/v1/x HTTP/1.1\r\nauthorization: Bearer ${CI_TOKEN}\r\n`;
    const { answer, failed } = await answerWhileSending(gateway, head);
    expect(failed).toBeUndefined();
    expect(answer).toMatch(/^HTTP\/1\.1 413/);
  });

  test('another expectation than 100-continue: 417', async () => {
    const gateway = await startGateway();
    expect(await send(gateway, 'POST /api/v1/x', 'expect: 200-ok\r\ncontent-length: 1\r\n\r\n')).toMatch(
      /^HTTP\/1\.1 417/,
    );
  });
});

test('a client that sends its headers too slowly gets 408 and is disconnected', {
  timeout: 30_000,
}, async () => {
  const gateway = await startGateway();
  const answer = await exchangeBytes(gateway, 'GET /api/v1/x HTTP/1.1\r\nhost: loc');
  expect(answer).toMatch(/^HTTP\/1\.1 408[\s\S]*connection: close[\s\S]*REQUEST_TIMEOUT/);
});

describe('corners of HTTP', () => {
  test('100 Continue is sent after authentication, and not when it fails', async () => {
    const gateway = await startGateway();
    const asked = await send(gateway, 'POST /api/v1/x', 'expect: 100-continue\r\ncontent-length: 2\r\n\r\n');
    expect(asked).toBe('HTTP/1.1 100 Continue\r\n\r\n');
    const stranger = await exchangeBytes(
      gateway,
      'POST /api/v1/x HTTP/1.1\r\nhost: localhost\r\nexpect: 100-continue\r\ncontent-length: 2\r\n\r\n',
    );
    expect(stranger).toMatch(/^HTTP\/1\.1 401/);
    const own = await exchangeBytes(
      gateway,
      'POST /auth/token HTTP/1.1\r\nhost: localhost\r\nexpect: 100-continue\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}',
    );
    expect(own).toMatch(/^HTTP\/1\.1 100 Continue\r\n\r\nHTTP\/1\.1 400/);
  });

  test('the absolute form is routed by its path, and its authority is the host', async () => {
    const gateway = await startGateway();
    const { port } = new URL(gateway.url);
    expect(await send(gateway, `GET http://localhost:${port}/api/v1/x?y=1`, '\r\n')).toMatch(
      /^HTTP\/1\.1 200/,
    );
    expect(gateway.upstream.seen[0]?.url).toBe('/api/v1/x?y=1');
    expect(await send(gateway, 'GET http://evil.example/api/v1/x', '\r\n')).toMatch(/^HTTP\/1\.1 403/);
  });

  test('OPTIONS * is answered for the server', async () => {
    const gateway = await startGateway();
    const answer = await exchangeBytes(gateway, 'OPTIONS * HTTP/1.1\r\nhost: localhost\r\n\r\n');
    expect(answer).toMatch(/^HTTP\/1\.1 204[\s\S]*allow: GET/);
  });

  test('pipelined requests are answered in order', async () => {
    const upstream = await startUpstream((req, res) => {
      setTimeout(() => res.end(req.url), req.url === '/api/v1/1' ? 50 : 0);
    });
    const gateway = await startGateway({ upstream });
    const one = (n: number) => `GET /api/v1/${n} HTTP/1.1\r\nhost: localhost\r\n${AUTH}\r\n`;
    const answer = await exchangeBytes(gateway, one(1) + one(2));
    expect(answer.indexOf('/api/v1/1')).toBeGreaterThan(0);
    expect(answer.indexOf('/api/v1/1')).toBeLessThan(answer.indexOf('/api/v1/2'));
  });

  test('an upstream that violates HTTP', async () => {
    const upstream = await startUpstream((_req, res) => {
      res.write('a');
      res.end('b');
    });
    const gateway = await startGateway({ upstream });
    const answer = await exchangeBytes(gateway, `GET /api/v1/x HTTP/1.0\r\n${AUTH}\r\n`);
    expect(answer).toMatch(/^HTTP\/1\.1 200/);
    expect(answer).not.toMatch(/transfer-encoding/i);
    expect(answer.endsWith('\r\n\r\nab')).toBe(true);
    const expecting = `POST /api/v1/x HTTP/1.0\r\n${AUTH}expect: 100-continue\r\ncontent-length: 2\r\n\r\n{}`;
    expect(await exchangeBytes(gateway, expecting)).toMatch(/^HTTP\/1\.1 200/);
  });
});

describe('an upstream that breaks the rules', () => {
  async function withUpstreamBytes(bytes: string | string[]) {
    const server = createTcpServer((socket) => {
      socket.once('data', async () => {
        for (const part of [bytes].flat()) {
          socket.write(part, 'latin1');
          await sleep(10);
        }
      });
      socket.on('error', () => {});
    });
    const url = await listening(server);
    return startGateway({ peers: createPeers({ rest: url }) });
  }

  test.each([
    ['no HTTP at all', 'hello\r\n\r\n'],
    ['two lengths', 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-length: 3\r\n\r\nabc'],
    ['both framings', 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n'],
    ['a folded header', 'HTTP/1.1 200 OK\r\nx-a: b\r\n c\r\ncontent-length: 0\r\n\r\n'],
    ['a bare line feed', 'HTTP/1.1 200 OK\r\nx-a: b\nx-c: d\r\ncontent-length: 0\r\n\r\n'],
    ['a coding we do not know', 'HTTP/1.1 200 OK\r\ntransfer-encoding: gzip\r\n\r\n'],
    ['an unasked upgrade', 'HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\n\r\n'],
    ['headers without end', `HTTP/1.1 200 OK\r\nx-a: ${'x'.repeat(70_000)}`],
  ])('%s: 502', async (_name, bytes) => {
    const gateway = await withUpstreamBytes(bytes);
    const response = await gateway.fetch('/api/v1/x', { headers: CI_HEADERS });
    expect(response.status).toBe(502);
  });

  test('an answer sent byte by byte, after an interim one, is parsed', async () => {
    const text =
      'HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\nHTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nt: x\r\n\r\n';
    const gateway = await withUpstreamBytes([...text]);
    const response = await gateway.fetch('/api/v1/x', { headers: CI_HEADERS });
    expect(await response.text()).toBe('abc');
    expect(response.headers.get('t')).toBeNull();
  });

  test('bytes beyond the answer are discarded', async () => {
    const gateway = await withUpstreamBytes(
      'HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nokHTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\npoison',
    );
    for (let i = 0; i < 3; i++) {
      const response = await gateway.fetch('/api/v1/x', { headers: CI_HEADERS });
      expect(await response.text()).not.toContain('poison');
    }
  });
});

/** As many as a loaded machine accepts within the drain: client, gateway and upstream share this event loop. */
const IN_FLIGHT = 250;

test('a stopping gateway answers all requests in flight and in the backlog', async () => {
  const random = printedRandom();
  const upstream = await startUpstream((_req, res) => {
    setTimeout(() => res.end('ok'), random() * 200);
  });
  const gateway = await startGateway({ upstream });
  const { port } = new URL(gateway.url);
  const request = `GET /api/v1/x HTTP/1.1\r\nhost: localhost\r\n${AUTH}\r\n`;
  const answers = Array.from({ length: IN_FLIGHT }, () => {
    const { promise, resolve } = Promise.withResolvers<string>();
    let text = '';
    const socket = connect(Number(port), '127.0.0.1', () => socket.write(request));
    socket.setEncoding('latin1').on('data', (part) => {
      text += part;
    });
    socket.on('close', () => resolve(text)).on('error', (error) => resolve(String(error)));
    return promise;
  });
  while (upstream.seen.length < IN_FLIGHT / 4) await sleep(1);
  await gateway.close();
  const texts = await Promise.all(answers);
  expect(texts.filter((text) => /^HTTP\/1\.1 200 [\s\S]*\r\n\r\n(?:2\r\n)?ok/.test(text))).toHaveLength(
    IN_FLIGHT,
  );
});
