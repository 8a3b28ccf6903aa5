import { once } from 'node:events';
import { createServer } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import type { Duplex } from 'node:stream';
import { text } from 'node:stream/consumers';
import { describe, expect, onTestFinished, test } from 'vitest';
import { WebSocket, WebSocketServer } from 'ws';
import { LIMITS } from '../../../src/contracts/index.ts';
import type { Principal } from '../../../src/daemons/gateway/domain/identity/authenticator.ts';
import { SocketProxy } from '../../../src/daemons/gateway/proxy/socket-proxy.ts';
import type { Upstream } from '../../../src/daemons/gateway/proxy/upstreams.ts';
import { createPeers } from '../../../src/daemons/peers.ts';
import { refuseUpgrade } from '../../../src/http/index.ts';
import { toPlatformError } from '../../../src/kit/errors/errors.ts';
import { manualClock } from '../../../src/kit/time/clock.ts';
import { minutes, seconds } from '../../../src/kit/time/duration.ts';
import { ADMIN_TOKEN, startGateway as startHosts } from '../../support/gateway.ts';
import { registerTestHost } from '../../support/host-agent.ts';
import { clientFrame, openRawSocket, type RawSocket } from './support/raw-socket.ts';
import { CI_TOKEN, startGateway } from './support/start-gateway.ts';

const MAX_BYTES = LIMITS.webSocketMessageBytes;
const CLOSED_PROTOCOL = 1002;
const CLOSED_TOO_LARGE = 1009;
const CLOSED_AWAY = 1001;

/** A gateway before a service that remembers the sizes of messages; `opens` a raw socket to it. */
async function withService() {
  const server = createServer();
  const sizes: number[] = [];
  const sockets = new WebSocketServer({ server });
  sockets.on('connection', (socket) => {
    socket.on('error', () => {});
    socket.on('message', (data: Buffer) => void sizes.push(data.length));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    for (const socket of sockets.clients) socket.terminate();
    server.close();
  });
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const gateway = await startGateway({ peers: createPeers({ rest: url }) });
  const opens = (behind?: Buffer) => openRawSocket(gateway, '/api/v1/live', CI_TOKEN, behind);
  return { gateway, sizes, opens };
}

async function openHost(): Promise<RawSocket> {
  const gateway = await startHosts();
  const host = await registerTestHost(gateway, ADMIN_TOKEN);
  return openRawSocket(gateway, '/hosts/connect', await host.token());
}

describe('a frame length not in its shortest form closes with 1002', () => {
  const WRONG = [
    ['64 bits for 5 bytes', clientFrame(Buffer.alloc(5), { lengthBytes: 8 })],
    ['64 bits for 65,535 bytes', clientFrame(Buffer.alloc(65_535), { lengthBytes: 8 })],
    ['16 bits for 125 bytes', clientFrame(Buffer.alloc(125), { lengthBytes: 2 })],
    ['64 bits of which the first is set', Buffer.from([0x81, 0xff, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0])],
  ] as const;

  test.each(WRONG)('%s, from a host agent', async (_name, frame) => {
    const socket = await openHost();
    socket.send(frame);
    expect(await socket.closed).toBe(CLOSED_PROTOCOL);
  });

  test.each(WRONG)('%s, through a proxied WebSocket', async (_name, frame) => {
    const { opens, sizes } = await withService();
    const socket = await opens();
    socket.send(Buffer.concat([clientFrame(Buffer.alloc(7)), frame]));
    expect(await socket.closed).toBe(CLOSED_PROTOCOL);
    expect(sizes.filter((size) => size !== 7)).toEqual([]);
  });

  test('also right behind the handshake, and byte by byte', async () => {
    const { opens } = await withService();
    expect(await (await opens(WRONG[0][1])).closed).toBe(CLOSED_PROTOCOL);
    const slow = await opens();
    for (const byte of WRONG[2][1].subarray(0, 8)) slow.send(Buffer.from([byte]));
    expect(await slow.closed).toBe(CLOSED_PROTOCOL);
  });
});

describe('a proxied WebSocket', () => {
  test('accepts messages of 1 MiB, in shortest form and in several frames', async () => {
    const { opens, sizes } = await withService();
    const socket = await opens();
    const half = Buffer.alloc(MAX_BYTES / 2);
    for (const frame of [
      clientFrame(Buffer.alloc(126)),
      clientFrame(Buffer.alloc(65_536)),
      clientFrame(half, { isLast: false }),
      clientFrame(Buffer.from('ping'), { opcode: 9 }),
      clientFrame(half, { opcode: 0 }),
      clientFrame(Buffer.alloc(MAX_BYTES)),
    ])
      socket.send(frame);
    await expect.poll(() => sizes).toEqual([126, 65_536, MAX_BYTES, MAX_BYTES]);
  });

  test.each([
    ['in one frame', [clientFrame(Buffer.alloc(MAX_BYTES + 1))]],
    [
      'in several',
      [clientFrame(Buffer.alloc(MAX_BYTES), { isLast: false }), clientFrame(Buffer.alloc(1), { opcode: 0 })],
    ],
  ])('closes with 1009 for more than 1 MiB %s', async (_name, frames) => {
    const { opens, sizes } = await withService();
    const socket = await opens();
    for (const frame of frames) socket.send(frame);
    expect(await socket.closed).toBe(CLOSED_TOO_LARGE);
    expect(sizes).toEqual([]);
  });

  test('closes with 1001 after ten idle minutes, and not before', async () => {
    const { gateway, opens, sizes } = await withService();
    const socket = await opens();
    gateway.clock.advance(minutes(10));
    socket.send(clientFrame(Buffer.from('still here')));
    await expect.poll(() => sizes).toHaveLength(1);
    gateway.clock.advance(minutes(10));
    socket.send(clientFrame(Buffer.from('still here')));
    await expect.poll(() => sizes).toHaveLength(2);
    gateway.clock.advance(minutes(11));
    expect(await socket.closed).toBe(CLOSED_AWAY);
  });
});

/** A service that takes upgrades by hand, to leave its side open when the client has ended. */
async function withHalfOpen() {
  const server = createServer();
  const { promise, resolve } = Promise.withResolvers<Duplex>();
  server.on('upgrade', (_request, socket) => {
    socket.on('error', () => {});
    socket.write('HTTP/1.1 101 Switching Protocols\r\nconnection: Upgrade\r\nupgrade: websocket\r\n\r\n');
    resolve(socket);
  });
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const gateway = await startGateway({ peers: createPeers({ rest: url }) });
  const { port, hostname } = new URL(gateway.url);
  const client = connect({ port: Number(port), host: hostname, allowHalfOpen: true });
  client.on('error', () => {});
  const handshake = ['GET /api/v1/live HTTP/1.1', 'host: localhost', `authorization: Bearer ${CI_TOKEN}`];
  const upgrade = ['connection: upgrade', 'upgrade: websocket', 'sec-websocket-version: 13'];
  const key = 'sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==';
  client.write(`${[...handshake, ...upgrade, key].join('\r\n')}\r\n\r\n`);
  const service = await promise;
  await once(client, 'data');
  onTestFinished(() => {
    client.destroy();
    service.destroy();
    server.close();
  });
  return { gateway, client, service };
}

test('after the client of a proxied WebSocket has closed, the service has ten seconds', async () => {
  const { gateway, client, service } = await withHalfOpen();
  const ended = once(service.resume(), 'end');
  client.end();
  await ended;
  const said = once(client, 'data');
  service.write(Buffer.from([0x81, 0x02, 0x68, 0x69]));
  expect(String((await said)[0]).slice(2)).toBe('hi');

  let isClosed = false;
  const closed = once(client.resume(), 'close').then(() => {
    isClosed = true;
  });
  gateway.clock.advance(seconds(9));
  await gateway.fetch('/health');
  expect(isClosed).toBe(false);
  gateway.clock.advance(seconds(1));
  await closed;
});

test('after the service has closed, the client is closed within that time', async () => {
  const { gateway, client, service } = await withHalfOpen();
  const ended = once(client.resume(), 'end');
  service.end();
  await ended;
  const closed = once(service.resume(), 'close');
  gateway.clock.advance(seconds(10));
  await closed;
});

describe('a gateway limits open proxied WebSockets', () => {
  test('a tenant gets three quarters of them, then 429; 503 when none is free; a close frees one', async () => {
    const { url } = await echoService();
    const { open } = await proxyOf(url, 8);
    const first = await Promise.all(Array.from({ length: 6 }, () => open('acme')));
    expect(first.map(({ status }) => status)).toEqual(Array(6).fill(101));
    const refused = await open('acme');
    expect([refused.status, refused.code]).toEqual([429, 'RATE_LIMIT_EXCEEDED']);
    const others = [await open('b'), await open('c')];
    expect(others.map(({ status }) => status)).toEqual([101, 101]);
    const full = await open('d');
    expect([full.status, full.code]).toEqual([503, 'SERVICE_UNAVAILABLE']);
    expect((await open('acme', '/refused')).status).toBe(503);

    first[0]!.end();
    first[1]!.end();
    first[2]!.end();
    await expect.poll(async () => (await open('acme', '/refused')).status).toBe(403);
    // What the service refused holds no place.
    expect((await open('acme', '/refused')).status).toBe(403);
    expect((await open('d')).status).toBe(101);
  });
});

/** A service that takes every upgrade but one path. */
async function echoService(): Promise<{ url: string }> {
  const server = createServer();
  const sockets = new WebSocketServer({ noServer: true });
  server.on('upgrade', (request, socket, head) => {
    if (request.url === '/refused') socket.end('HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\n\r\n');
    else sockets.handleUpgrade(request, socket, head, (opened) => opened.on('error', () => {}));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    for (const socket of sockets.clients) socket.terminate();
    server.closeAllConnections();
    server.close();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` };
}

interface Opened {
  status: number;
  code?: string;
  end(): void;
}

/** The gateway's proxy of WebSockets with few places, before that service. */
async function proxyOf(origin: string, maxOpen: number) {
  const proxy = new SocketProxy({
    internalSecret: 'an-internal-test-secret-of-enough-length',
    admins: { is: () => false },
    timeoutMs: 5000,
    revocations: { isRevoked: () => false, onRevoked: () => {} },
    count: () => {},
    clock: manualClock(),
    clientSideOf: () => ({ ip: '127.0.0.1', host: 'localhost', proto: 'http' }),
    maxOpen,
  });
  const upstream: Upstream = {
    ...{ name: 'rest', prefixes: ['/'], websocket: true, sandbox: true, basePath: '' },
    origin: () => origin,
  };
  const server = createServer();
  server.on('upgrade', (request, socket, head) => {
    socket.on('error', () => socket.destroy());
    const namespaceId = String(request.headers['x-tenant']);
    const caller: Principal = {
      jti: null,
      hostId: 'h',
      namespaceId,
      kind: 'static',
      expiresAt: Number.POSITIVE_INFINITY,
    };
    const ids = { requestId: 'r', traceId: 't'.repeat(32), spanId: 's'.repeat(16), ip: '127.0.0.1' };
    proxy
      .join(upstream, { request, socket, head, caller, ...ids })
      .catch((error) => refuseUpgrade(socket, toPlatformError(error), 'r'));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    proxy.closeAll();
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  const open = (tenant: string, path = '/live') =>
    new Promise<Opened>((resolve, reject) => {
      const socket = new WebSocket(`ws://127.0.0.1:${port}${path}`, { headers: { 'x-tenant': tenant } });
      socket.on('open', () => resolve({ status: 101, end: () => socket.terminate() }));
      socket.on('unexpected-response', (_request, response) => {
        text(response).then((body) => {
          const code = body === '' ? {} : { code: JSON.parse(body).error.code };
          resolve({ status: response.statusCode!, ...code, end: () => {} });
        }, reject);
      });
      socket.on('error', reject);
    });
  return { open };
}
