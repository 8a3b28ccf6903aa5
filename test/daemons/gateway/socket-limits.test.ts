import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, expect, onTestFinished, test } from 'vitest';
import { WebSocketServer } from 'ws';
import { LIMITS } from '../../../src/contracts/index.ts';
import { createPeers } from '../../../src/daemons/peers.ts';
import { minutes } from '../../../src/kit/duration.ts';
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

describe('a frame length that is not in its shortest form closes with 1002', () => {
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
  test('takes messages of 1 MiB, in shortest form and in several frames', async () => {
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

  test('closes with 1001 when nothing moves for ten minutes, and not before', async () => {
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
