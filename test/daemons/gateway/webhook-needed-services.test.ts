import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { getDelivery, ManifestV3 } from '../../../src/contracts/index.ts';
import { ServiceUse } from '../../../src/daemons/gateway/domain/webhooks/dispatch/service-use.ts';
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

test('an accepted delivery waits while the state service is unavailable, and runs once it responds again', async () => {
  const { gateway, send, stopState, startState } = await start();
  await ended(gateway, await send('1', { count: 'n' }), 'succeeded');
  await stopState();
  const waiting: string[] = [];
  // What the last answer vouches for may still begin; none does once the service was found to be away.
  await eventually(async () => {
    waiting.push(await send(`probe-${waiting.length}`, {}));
    expect(gateway.logs.lines.some(({ message }) => String(message).includes('service is unavailable'))).toBe(
      true,
    );
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
  await logged(gateway, 'is available again');
});

test('a handler in flight when the state service fails is not run again', async () => {
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

/** Sync deliveries; each must be told apart by what its handler does. */
async function startSync() {
  const { gateway, stopState, startState } = await start();
  const secret = await provision(gateway, 'plain');
  const send = (payload: object) => deliver(gateway, { event: 'plain', secret, payload });
  return { gateway, send, stopState, startState };
}

test('a sync delivery is answered 503 before its handler starts while the state service is unavailable', async () => {
  const { gateway, send, stopState, startState } = await startSync();
  expect((await send({ count: 'n' })).status).toBe(200);
  await stopState();
  await eventually(async () => expect((await send({ count: 'n' })).status).toBe(503));
  const before = handlerRuns(gateway);
  const held = await send({ count: 'n' });
  expect([held.status, held.headers.get('retry-after')]).toEqual([503, '5']);
  expect(held.body.error).toMatchObject({ code: 'SERVICE_UNAVAILABLE' });
  expect(handlerRuns(gateway)).toBe(before);
  await startState();
  await eventually(async () => expect((await send({ count: 'n' })).status).toBe(200));
});

test('a plugin that ran without calling the state service is not held while that is unavailable', async () => {
  const { gateway, send, stopState } = await startSync();
  for (let run = 0; run < 50; run++) expect((await send({})).status).toBe(200);
  await stopState();
  for (let run = 0; run < 5; run++) expect((await send({})).status).toBe(200);
  expect(handlerRuns(gateway)).toBe(55);
});

test('one call marks a service as needed again, only for the calling plugin', () => {
  const use = new ServiceUse();
  const { permissions } = ManifestV3.parse({ schema: 'svc.plugin/3', id: 'a', version: '1.0.0' });
  const runs = (count: number): void => {
    for (let run = 0; run < count; run++) for (const id of ['a', 'b']) use.noteRun(id);
  };
  expect(use.neededBy('a', permissions)).toEqual(['state']);
  runs(50);
  expect(use.neededBy('a', permissions)).toEqual([]);
  use.noteCall('a', 'fetch');
  expect(use.neededBy('a', permissions)).toEqual([]);
  use.noteCall('a', 'cache');
  expect([use.neededBy('a', permissions), use.neededBy('b', permissions)]).toEqual([['state'], []]);
  runs(50);
  expect(use.neededBy('a', permissions)).toEqual([]);
  use.forget();
  expect(use.neededBy('b', permissions)).toEqual(['state']);
});

test('an unavailable service is probed twice a second, however many deliveries wait for it', async () => {
  let probes = 0;
  let isThere = false;
  const health = createServer((_request, response) => {
    probes++;
    response.writeHead(isThere ? 200 : 503).end();
  });
  await new Promise<void>((resolve) => health.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void health.close());
  const { port } = health.address() as AddressInfo;
  const gateway = await startGateway({ peers: createPeers({ state: `http://127.0.0.1:${port}` }) });
  const secret = await provision(gateway, 'later');
  const send = async (id: number): Promise<string> => {
    const headers = { 'x-delivery': String(id) };
    return (await deliver(gateway, { event: 'later', secret, payload: {}, headers })).body.webhookId;
  };
  const held = [await send(0)];
  await logged(gateway, 'service is unavailable');

  const since = performance.now();
  probes = 0;
  for (let id = 1; id <= 30; id++) held.push(await send(id));
  await eventually(() => expect(probes).toBeGreaterThanOrEqual(4));
  // One may have been due when the count began.
  expect(probes).toBeLessThanOrEqual((performance.now() - since) / 490 + 1);

  expect(handlerRuns(gateway)).toBe(0);
  isThere = true;
  for (const webhookId of held) await ended(gateway, webhookId, 'succeeded');
  expect(handlerRuns(gateway)).toBe(31);
});
