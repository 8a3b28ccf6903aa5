import type { AddressInfo } from 'node:net';
import { createServer, type Server, type Socket } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { publishMessage } from '../../../../src/contracts/index.ts';
import type { GatewayServices } from '../../../../src/daemons/gateway/services.ts';
import { type ManualClock, systemClock } from '../../../../src/kit/time/clock.ts';
import { startGateway } from '../../../support/gateway.ts';
import { startReceiver, withStatus } from '../../../support/message-receiver.ts';

const DEAD = 1000;
const MESSAGES = 30;

/** Accepts connections, and never answers. */
async function startBlackHole(): Promise<string> {
  const sockets = new Set<Socket>();
  const server: Server = createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => {});
    socket.resume();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

test('1,000 dead endpoints do not delay the messages of one that answers', { timeout: 120_000 }, async () => {
  const gateway = await startGateway({
    clock: systemClock as ManualClock,
    config: { outgoing: { allowPrivateAddresses: true } },
  });
  const { endpointAdmin, endpointRegistry, messageDispatcher } = gateway.services as GatewayServices;
  const [blackHole, failing, healthy] = [
    await startBlackHole(),
    await startReceiver(),
    await startReceiver(),
  ];
  failing.answer(withStatus(500));
  const urls = [blackHole, 'http://127.0.0.1:1025', failing.url];
  // Not by API, which limits the changes per minute.
  const create = (url: string) =>
    endpointAdmin.create({ namespaceId: 'default' }, { url, types: ['*'], retrySchedule: [1, 1, 1, 1] });
  for (let n = 0; n < DEAD; n += 50)
    await Promise.all(Array.from({ length: 50 }, (_, i) => create(`${urls[(n + i) % 3]}/${n + i}`)));
  const { id } = await create(healthy.url);
  expect(endpointRegistry.match('default', null, 'x')).toHaveLength(DEAD + 1);
  const acceptedAt = new Map<string, number>();
  for (let n = 0; n < MESSAGES; n++) {
    const accepted = await gateway.call(publishMessage, { body: { type: 'x', data: n } });
    acceptedAt.set(accepted.id, performance.now());
  }
  await expect.poll(() => new Set(healthy.ids()).size, { timeout: 60_000 }).toBe(MESSAGES);
  const waits = healthy.received.map(({ id: message, receivedAt }) => receivedAt - acceptedAt.get(message)!);
  waits.sort((a, b) => a - b);
  // An endpoint that never answers takes 15 s. None of that reaches the healthy one, also on a loaded machine.
  expect(waits[Math.floor(waits.length / 2)]).toBeLessThan(5000);
  expect(waits.at(-1)).toBeLessThan(10_000);
  expect(endpointRegistry.find(id)?.record.failingSince).toBeNull();
  // The endpoints that never answer are slow attempts: one each, beside those that have fast slots.
  expect(messageDispatcher.inFlight).toBeGreaterThan(300);
});
