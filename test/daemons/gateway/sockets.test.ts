import { randomBytes } from 'node:crypto';
import { createServer } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { createServer as createTcpServer } from 'node:net';
import { describe, expect, onTestFinished, test } from 'vitest';
import { WebSocket, WebSocketServer } from 'ws';
import { mintToken, revokeToken } from '../../../src/contracts/index.ts';
import { createPeers } from '../../../src/daemons/peers.ts';
import { settled } from '../../support/settled.ts';
import { asOperator } from './support/login.ts';
import { exchangeBytes } from './support/raw-http.ts';
import { CI_HEADERS, CI_TOKEN, signJwt, startGateway, type TestGateway } from './support/start-gateway.ts';

/** A WebSocket server behind a gateway; `serve` gets each of its sockets. */
async function withSocketUpstream(
  serve: (socket: WebSocket) => void,
  gatewayConfig: Record<string, unknown> = {},
) {
  const server = createServer((_req, res) => res.writeHead(426, { 'content-length': '4' }).end('nope'));
  const upgrades: Array<Record<string, unknown>> = [];
  const sockets = new WebSocketServer({
    server,
    maxPayload: 64 * 1024 * 1024,
    perMessageDeflate: true,
    handleProtocols: (offered) => [...offered][1] ?? false,
  });
  sockets.on('connection', (socket, request) => {
    upgrades.push({ ...request.headers, url: request.url });
    serve(socket);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    for (const socket of sockets.clients) socket.terminate();
    server.closeAllConnections();
    server.close();
  });
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const gateway = await startGateway({
    peers: createPeers({ rest: url, workflow: url }),
    gateway: gatewayConfig,
  });
  return { gateway, upgrades, sockets };
}

function open(
  gateway: TestGateway,
  path = '/api/v1/live',
  headers: Record<string, string> = CI_HEADERS,
  protocols: string[] = [],
) {
  const socket = new WebSocket(gateway.url.replace('http', 'ws') + path, protocols, { headers });
  socket.on('error', () => {});
  onTestFinished(() => socket.terminate());
  return socket;
}

const opened = (socket: WebSocket) =>
  new Promise<number>((resolve) => {
    socket.on('open', () => resolve(101));
    socket.on('unexpected-response', (request, response) => {
      request.destroy();
      resolve(response.statusCode!);
    });
  });
const closed = (socket: WebSocket) =>
  new Promise<{ code: number; reason: string }>((resolve) =>
    socket.on('close', (code, reason) => resolve({ code, reason: String(reason) })),
  );
const message = (socket: WebSocket) =>
  new Promise<string>((resolve) => socket.once('message', (data) => resolve(String(data))));

describe('a WebSocket through the gateway', () => {
  test('carries messages both ways, the identity of the caller and the negotiated subprotocol', async () => {
    const { gateway, upgrades } = await withSocketUpstream((socket) =>
      socket.on('message', (data) => socket.send(`echo ${data}`)),
    );
    const socket = open(gateway, '/api/v1/live?x=%2F', { ...CI_HEADERS, 'x-tenant-id': 'evil' }, [
      'v1',
      'v2',
    ]);
    expect(await opened(socket)).toBe(101);
    expect(socket.protocol).toBe('v2');
    socket.send('hello');
    expect(await message(socket)).toBe('echo hello');
    expect(upgrades[0]).toMatchObject({
      url: '/api/v1/live?x=%2F',
      'x-tenant-id': 'acme',
      'x-svc-host-id': 'ci',
    });
    expect(upgrades[0]?.authorization).toBeUndefined();
    const metrics = await (await gateway.fetch('/metrics')).text();
    expect(metrics).toContain('route="/api/v1/*",status="101"');
  });

  test('forwards the client data of a trusted proxy, and ignores all other claims', async () => {
    const told = {
      ...CI_HEADERS,
      'x-forwarded-for': '198.51.100.1, 203.0.113.7',
      'x-forwarded-host': 'inside.example, svc.example.com',
      'x-forwarded-proto': 'https',
    };
    const behind = await withSocketUpstream(() => {}, { trustedProxies: ['127.0.0.1'] });
    expect(await opened(open(behind.gateway, '/api/v1/live', told))).toBe(101);
    expect(behind.upgrades[0]).toMatchObject({
      'x-forwarded-for': '203.0.113.7',
      'x-forwarded-host': 'svc.example.com',
      'x-forwarded-proto': 'https',
    });
    const direct = await withSocketUpstream(() => {});
    expect(await opened(open(direct.gateway, '/api/v1/live', told))).toBe(101);
    expect(direct.upgrades[0]).toMatchObject({ 'x-forwarded-for': '127.0.0.1', 'x-forwarded-proto': 'http' });
    expect(direct.upgrades[0]!['x-forwarded-host']).toBe(new URL(direct.gateway.url).host);
  });

  test('carries large messages, pings, and data sent right after the handshake', async () => {
    const { gateway } = await withSocketUpstream((socket) => {
      socket.send('welcome');
      socket.on('message', (data) => socket.send(data));
    });
    const socket = open(gateway);
    expect(await message(socket)).toBe('welcome');
    const large = 'x'.repeat(8 * 1024 * 1024);
    socket.send(large);
    expect((await message(socket)).length).toBe(large.length);
    const pong = new Promise((resolve) => socket.on('pong', resolve));
    socket.ping();
    await pong;
  });

  test.each([
    ['the upstream', 4001],
    ['the client', 4002],
  ])('passes the close code of %s on', async (who, code) => {
    const atUpstream = Promise.withResolvers<number>();
    const { gateway } = await withSocketUpstream((socket) => {
      socket.on('close', (received) => atUpstream.resolve(received));
      if (who === 'the upstream') socket.close(code, 'because');
    });
    const socket = open(gateway);
    const end = closed(socket);
    await opened(socket);
    if (who === 'the client') socket.close(code, 'because');
    expect(await end).toEqual({ code, reason: 'because' });
    expect(await atUpstream.promise).toBe(code);
  });

  test('a lost client closes its upstream socket, and a lost upstream its client', async () => {
    const gone = Promise.withResolvers<void>();
    const { gateway, sockets } = await withSocketUpstream((socket) =>
      socket.on('close', () => gone.resolve()),
    );
    const first = open(gateway);
    await opened(first);
    first.terminate();
    await gone.promise;
    const second = open(gateway);
    await opened(second);
    const end = closed(second);
    for (const socket of sockets.clients) socket.terminate();
    expect((await end).code).toBe(1006);
  });

  test('a slow reader applies back-pressure to its writer', async () => {
    let written = 0;
    const { gateway } = await withSocketUpstream((socket) => {
      const chunk = randomBytes(1024 * 1024);
      const more = (): void => {
        if (written >= 64) return;
        written++;
        socket.send(chunk, more);
      };
      more();
    });
    const socket = open(gateway);
    await opened(socket);
    socket.pause();
    expect(await settled(() => written)).toBeLessThan(50);
    socket.resume();
    await expect.poll(() => written).toBe(64);
  });
});

describe('an upgrade is refused', () => {
  test.each([
    ['without a token', {}, 401],
    ['with a bad one', { authorization: 'Bearer nope' }, 401],
    ['with two schemes', { authorization: `Basic ${CI_TOKEN}` }, 401],
  ])('%s', async (_name, headers, status) => {
    const { gateway, upgrades } = await withSocketUpstream(() => {});
    expect(await opened(open(gateway, '/api/v1/live', headers))).toBe(status);
    expect(upgrades).toEqual([]);
  });

  test('by the absolute form of the target, whose authority is checked', async () => {
    const { gateway } = await withSocketUpstream((socket) => socket.close());
    const ask = (authority: string) =>
      exchangeBytes(
        gateway,
        `GET http://${authority}/api/v1/live HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer ${CI_TOKEN}\r\nconnection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n`,
      );
    expect(await ask('localhost')).toMatch(/^HTTP\/1\.1 101/);
    expect(await ask('evil.example')).toMatch(/^HTTP\/1\.1 403/);
  });

  test('on routes without a socket, with dot segments, and without a valid handshake', async () => {
    const { gateway } = await withSocketUpstream(() => {});
    expect(await opened(open(gateway, '/nowhere'))).toBe(404);
    expect(await opened(open(gateway, '/api/v1/workflows/x'))).toBe(404);
    const bytes = (start: string, rest: string) =>
      exchangeBytes(
        gateway,
        `${start} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer ${CI_TOKEN}\r\n${rest}\r\n`,
      );
    const handshake =
      'connection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\nsec-websocket-key: x\r\n';
    expect(await bytes('GET /api/v1/%2e%2e/x', handshake)).toMatch(/^HTTP\/1\.1 400[\s\S]*VALIDATION_ERROR/);
    expect(await bytes('POST /api/v1/live', handshake)).toMatch(/^HTTP\/1\.1 400/);
    expect(await bytes('GET /api/v1/live', `host: localhost\r\n${handshake}`)).toMatch(/^HTTP\/1\.1 400/);
    expect(await bytes('GET /api/v1/live', 'connection: upgrade\r\nupgrade: websocket\r\n')).toMatch(
      /^HTTP\/1\.1 400/,
    );
    const rebinding = await exchangeBytes(
      gateway,
      `GET /api/v1/live HTTP/1.1\r\nhost: evil.example\r\n${handshake}\r\n`,
    );
    expect(rebinding).toMatch(/^HTTP\/1\.1 403/);
  });

  test.each([
    ['content-length: 4\r\nx-why: y', 'nope'],
    ['transfer-encoding: chunked\r\nx-why: y', '4\r\nnope\r\n0\r\n\r\n'],
  ])('with the answer of the upstream when the upstream refuses (%j)', async (headers, body) => {
    const server = createServer((_req, res) => res.end()).on('upgrade', (_request, socket: Socket) => {
      socket.end(`HTTP/1.1 403 Forbidden\r\n${headers}\r\n\r\n${body}`);
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => void server.close());
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const gateway = await startGateway({ peers: createPeers({ rest: url }) });
    const answer = await exchangeBytes(
      gateway,
      `GET /api/v1/live HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer ${CI_TOKEN}\r\nconnection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\nsec-websocket-key: x\r\n\r\n`,
    );
    expect(answer).toMatch(/^HTTP\/1\.1 403[\s\S]*x-why: y[\s\S]*connection: close/i);
    expect(answer).toContain(headers);
    expect(answer.endsWith(`\r\n\r\n${body}`)).toBe(true);
  });

  test.each([
    ['is gone', undefined, 502],
    ['answers nonsense', 'hello\r\n\r\n', 502],
    ['puts a header into its status line', 'HTTP/1.1 101 Ok\nx-a: b\r\nupgrade: websocket\r\n\r\n', 502],
    ['sends a line that is no header', 'HTTP/1.1 101 Ok\r\nupgrade websocket\r\n\r\n', 502],
    ['is silent', '', 504],
  ])('when the upstream %s', async (_name, bytes, status) => {
    let url = 'http://127.0.0.1:1';
    if (bytes !== undefined) {
      const server = createTcpServer((socket) =>
        socket.on('error', () => {}).once('data', () => socket.write(bytes)),
      );
      await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
      onTestFinished(() => void server.close());
      url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    }
    const gateway = await startGateway({
      peers: createPeers({ rest: url }),
      gateway: {
        upstreamTimeoutMs: 100,
        staticTokens: { [CI_TOKEN]: { hostId: 'ci', namespaceId: 'acme' } },
      },
    });
    expect(await opened(open(gateway))).toBe(status);
  });
});

test('revoking a token closes only its open sockets with 4403, between two frames', async () => {
  const { gateway } = await withSocketUpstream((socket) => {
    const timer = setInterval(() => socket.send('x'.repeat(100_000)), 1);
    socket.on('close', () => clearInterval(timer));
  });
  const operator = await asOperator(gateway);
  const { token, jti } = await operator(mintToken, { body: { hostId: 'viewer' as never } });
  const mine = open(gateway, '/api/v1/live', { authorization: `Bearer ${token}` });
  const other = open(gateway, '/api/v1/live', { authorization: `Bearer ${await signJwt({})}` });
  await Promise.all([opened(mine), opened(other)]);
  const end = closed(mine);
  await operator(revokeToken, { params: { jti } });
  expect(await end).toEqual({ code: 4403, reason: 'revoked' });
  expect(other.readyState).toBe(WebSocket.OPEN);
});

test('a token that expires closes only its open sockets with 4401 at that time', async () => {
  const { gateway } = await withSocketUpstream((socket) => socket.on('message', (data) => socket.send(data)));
  const exp = Math.floor(gateway.clock.now() / 1000) + 60;
  const mine = open(gateway, '/api/v1/live', { authorization: `Bearer ${await signJwt({ exp })}` });
  const other = open(gateway);
  await Promise.all([opened(mine), opened(other)]);
  const end = closed(mine);
  gateway.clock.advance(64_999);
  mine.send('still here');
  expect(await message(mine)).toBe('still here');
  gateway.clock.advance(1);
  expect(await end).toEqual({ code: 4401, reason: 'the token has expired' });
  expect(other.readyState).toBe(WebSocket.OPEN);
});

test('a stopping gateway closes open sockets with a close frame', async () => {
  const { gateway } = await withSocketUpstream(() => {});
  const socket = open(gateway);
  await opened(socket);
  const end = closed(socket);
  await gateway.close();
  expect((await end).code).toBe(1001);
});
