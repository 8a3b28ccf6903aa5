import { expect, test } from 'vitest';
import { getDelivery } from '../../../src/contracts/index.ts';
import { createPeers } from '../../../src/daemons/peers.ts';
import { state } from '../../../src/daemons/state/index.ts';
import { startTestDaemon } from '../../support/daemon.ts';
import { deliver, handlerRuns, provision, startGateway, type TestGateway } from '../../support/gateway.ts';
import { eventually } from '../../support/webhook-senders.ts';

/** A gateway beside a state service that can go and come back at one address. */
async function start() {
  const first = await startTestDaemon(state);
  const gateway = await startGateway({ peers: createPeers({ state: first.url }) });
  const secret = await provision(gateway, 'later');
  const send = async (id: string, payload: object) =>
    (await deliver(gateway, { event: 'later', secret, payload, headers: { 'x-delivery': id } })).body
      .webhookId as string;
  return {
    ...{ gateway, send },
    stopState: () => first.close(),
    startState: () =>
      startTestDaemon(state, {
        dataDir: first.dataDir,
        listen: { host: '127.0.0.1', port: Number(new URL(first.url).port) },
      }),
  };
}

const logged = (gateway: TestGateway, text: string) =>
  eventually(() =>
    expect(gateway.logs.lines.some(({ message }) => String(message).includes(text))).toBe(true),
  );

const ended = (gateway: TestGateway, webhookId: string, status: string) =>
  eventually(async () => {
    const record = await gateway.call(getDelivery, { params: { webhookId: webhookId as never } });
    expect([record.status, record.attempts]).toEqual([status, 1]);
  });

test('an accepted delivery waits while the state service is away, and runs once it answers again', async () => {
  const { gateway, send, stopState, startState } = await start();
  await ended(gateway, await send('1', { count: 'n' }), 'succeeded');
  await stopState();
  const waiting: string[] = [];
  // What the last answer vouches for may still begin; none does once the service was found to be away.
  await eventually(async () => {
    waiting.push(await send(`probe-${waiting.length}`, {}));
    expect(gateway.logs.lines.some(({ message }) => String(message).includes('does not answer'))).toBe(true);
  });
  const before = handlerRuns(gateway);
  const held = [await send('2', { count: 'n' }), await send('3', { count: 'n' })];
  for (const webhookId of held) {
    const { status } = await gateway.call(getDelivery, { params: { webhookId: webhookId as never } });
    expect(status).toBe('accepted');
  }
  expect(handlerRuns(gateway)).toBe(before);
  await startState();
  for (const webhookId of [...waiting, ...held]) await ended(gateway, webhookId, 'succeeded');
  await logged(gateway, 'answers again');
});

test('a handler that has begun when the state service goes away fails, and is not run again', async () => {
  const { gateway, send, stopState, startState } = await start();
  const webhookId = await send('1', { count: 'n', sleepMs: 2000 });
  await eventually(() => expect(handlerRuns(gateway)).toBe(1));
  await stopState();
  await ended(gateway, webhookId, 'failed');
  await startState();
  await ended(gateway, await send('2', { count: 'n' }), 'succeeded');
  expect(handlerRuns(gateway)).toBe(2);
  await ended(gateway, webhookId, 'failed');
});
