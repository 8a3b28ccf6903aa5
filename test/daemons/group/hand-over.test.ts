import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { takeUnread } from '../../../src/daemons/group/hand-over.ts';

test('received bytes are handed over, and later bytes stay unread for the next process', async () => {
  const server = createServer().listen(0, '127.0.0.1');
  onTestFinished(() => void server.close());
  await once(server, 'listening');
  const client = connect((server.address() as AddressInfo).port, '127.0.0.1');
  const [socket] = (await once(server, 'connection')) as [Socket];
  onTestFinished(() => {
    client.destroy();
    socket.destroy();
  });

  client.write('early');
  await once(socket, 'readable');
  expect(takeUnread(socket).toString()).toBe('early');
  client.write('later');
  await sleep(50);
  expect([socket.bytesRead, socket.readableLength]).toEqual(['early'.length, 0]);
});
