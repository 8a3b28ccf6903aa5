import { expect, onTestFinished, test, vi } from 'vitest';
import type {
  AttemptEnd,
  QueuedDelivery,
} from '../../../src/daemons/gateway/domain/webhooks/dispatch/attempts.ts';
import type { GatewayCalls } from '../../../src/daemons/gateway/domain/webhooks/dispatch/gateway-calls.ts';
import { OtherGateways } from '../../../src/daemons/gateway/domain/webhooks/dispatch/other-gateways.ts';
import { silentLogger } from '../../../src/kit/telemetry/logger.ts';
import { manualClock } from '../../../src/kit/time/clock.ts';
import type { GatewayStore } from '../../../src/store/ports/index.ts';
import { sqliteGatewayStore } from '../../../src/store/sqlite/index.ts';
import { tempDir } from '../../support/daemon.ts';
import { delivery, SUCCEEDED } from '../../support/new-delivery.ts';

const IDLE = { ownRunning: 0, ownLimit: 8 };
const BUSY = { ownRunning: 8, ownLimit: 8 };

/** A real store with a leader and two further gateways, whose answers the test scripts. */
async function start({ concurrency = 8 } = {}) {
  const clock = manualClock();
  const store = await sqliteGatewayStore({
    dataDir: await tempDir(),
    clock,
    logger: silentLogger,
    shared: true,
  });
  const fences = await Promise.all(['a', 'b', 'c'].map((instance) => join(store, instance)));
  const [own, b, c] = fences as [number, number, number, number];
  const attempt = vi.fn<GatewayCalls['attempt']>(async () => ({ nextAttemptAt: undefined, isUnread: false }));
  const announce = vi.fn<GatewayCalls['announce']>(async () => []);
  const ownAttempts = new Map<string, Promise<AttemptEnd | undefined>>();
  const others = new OtherGateways({
    members: store.members,
    fence: { fence: own, require: () => own },
    calls: { attempt, announce },
    inbox: store.inbox,
    own: { running: (webhookId) => ownAttempts.get(webhookId), follow: () => [...ownAttempts.keys()] },
    ...{ concurrency, clock, logger: silentLogger },
  });
  onTestFinished(async () => {
    others.close();
    await store.close();
  });
  return { clock, store, others, ownAttempts, attempt, announce, own, b, c };
}

async function join({ members }: GatewayStore, instance: string): Promise<number> {
  const fence = await members.join({
    ...{ kind: 'gateway', instance, version: '1', release: null, keys: null, leaseMs: 10_000, isSole: false },
  });
  await members.renew(fence, { leaseMs: 10_000, url: `http://${instance}` });
  return fence;
}

async function accepted(store: GatewayStore): Promise<QueuedDelivery> {
  const stored = delivery({ mode: 'async' });
  await store.inbox.accept(stored, undefined, '');
  return {
    delivery: stored,
    target: {} as QueuedDelivery['target'],
    payload: undefined,
    attempts: 0,
    marker: null,
  };
}

const urlsOf = (attempt: { mock: { calls: unknown[][] } }) => attempt.mock.calls.map(([url]) => url);

test('an attempt runs on the gateway with the fewest running attempts, and here when none has fewer', async () => {
  const { store, others, attempt } = await start({ concurrency: 2 });
  const item = await accepted(store);
  await others.refresh();
  expect(others.capacity).toBe(4);
  expect(await others.attempt(item, IDLE)).toBeUndefined();
  const ends: Array<() => void> = [];
  attempt.mockImplementation(
    () => new Promise((resolve) => ends.push(() => resolve({ nextAttemptAt: undefined, isUnread: false }))),
  );
  const running = Array.from({ length: 4 }, () => others.attempt(item, BUSY));
  await vi.waitFor(() => expect(ends).toHaveLength(4));
  expect(urlsOf(attempt).sort()).toEqual(['http://b', 'http://b', 'http://c', 'http://c']);
  expect(await others.attempt(item, BUSY)).toBeUndefined();
  for (const end of ends) end();
  expect(await Promise.all(running)).toEqual(Array(4).fill({ nextAttemptAt: undefined, isUnread: false }));
});

test('a gateway that refuses a plugin gets no more of its deliveries for a while', async () => {
  const { store, others, attempt, clock } = await start();
  const item = await accepted(store);
  await others.refresh();
  attempt.mockResolvedValue(undefined);
  for (let n = 0; n < 4; n++) expect(await others.attempt(item, BUSY)).toBeUndefined();
  expect(urlsOf(attempt)).toEqual(['http://b', 'http://c']);
  clock.advance(5000);
  await others.attempt(item, BUSY);
  expect(attempt).toHaveBeenCalledTimes(3);
});

test('a gateway that is stopping gets no further attempts, and still ends the one that it runs', async () => {
  const { store, others, attempt, b, c } = await start({ concurrency: 1 });
  const item = await accepted(store);
  await others.refresh();
  const { promise, resolve } = Promise.withResolvers<AttemptEnd>();
  attempt.mockReturnValueOnce(promise);
  const running = others.attempt(item, BUSY);
  await store.members.renew(b, { leaseMs: 10_000, url: 'http://b', isDraining: true });
  await others.refresh();
  expect(others.capacity).toBe(1);
  await others.attempt(item, BUSY);
  await store.members.renew(c, { leaseMs: 10_000, url: 'http://c', isDraining: true });
  await others.refresh();
  expect(await others.attempt(item, BUSY)).toBeUndefined();
  expect(urlsOf(attempt)).toEqual(['http://b', 'http://c']);
  resolve({ nextAttemptAt: 7, isUnread: false });
  expect(await running).toEqual({ nextAttemptAt: 7, isUnread: false });
});

test('when a call is lost, the outcome comes from the store', async () => {
  const { store, others, attempt } = await start();
  const item = await accepted(store);
  const { webhookId } = item.delivery;
  await others.refresh();
  attempt.mockImplementation(async () => {
    await store.inbox.finish(webhookId, { ...SUCCEEDED, status: 'retrying', nextAttemptAt: 5000 });
    throw new Error('connection reset');
  });
  expect(await others.attempt(item, BUSY)).toEqual({ nextAttemptAt: 5000, isUnread: false });
  attempt.mockImplementation(async () => {
    await store.inbox.finish(webhookId, SUCCEEDED);
    throw new Error('connection reset');
  });
  expect(await others.attempt({ ...item, attempts: 1 }, BUSY)).toEqual({
    nextAttemptAt: undefined,
    isUnread: false,
  });
});

test('when a call is lost and the gateway still runs the attempt, it is not started elsewhere', async () => {
  const { store, others, attempt, announce } = await start();
  const item = await accepted(store);
  await others.refresh();
  attempt.mockRejectedValue(new Error('connection reset'));
  announce.mockResolvedValueOnce([item.delivery.webhookId]).mockRejectedValueOnce(new Error('no answer'));
  expect(await others.attempt(item, BUSY)).toEqual({ nextAttemptAt: undefined, isUnread: true });
  expect(announce).toHaveBeenCalledTimes(3);
}, 15_000);

test('when the gateway of an attempt has ended, the delivery is read again', async () => {
  const { store, others, attempt, announce, b, c } = await start();
  const item = await accepted(store);
  await others.refresh();
  announce.mockRejectedValue(new Error('unreachable'));
  attempt.mockImplementation(
    (_url, _request, signal) =>
      new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason as Error))),
  );
  const end = others.attempt(item, BUSY);
  await vi.waitFor(() => expect(attempt).toHaveBeenCalledTimes(1));
  await store.members.leave(b);
  await store.members.leave(c);
  await others.refresh();
  expect(await end).toEqual({ nextAttemptAt: undefined, isUnread: true });
  expect(others.capacity).toBe(0);
});

test('a new leader waits for each gateway, and sends what still runs there to the same one', async () => {
  const { store, others, attempt, announce, own, b } = await start();
  const item = await accepted(store);
  announce.mockImplementation(async (url) => {
    if (url === 'http://c') return [item.delivery.webhookId];
    throw new Error('unreachable');
  });
  let isOver = false;
  const takeOver = others.takeOver().then(() => {
    isOver = true;
  });
  await vi.waitFor(() => expect(announce.mock.calls.length).toBeGreaterThanOrEqual(3), 10_000);
  expect(isOver).toBe(false);
  await store.members.leave(b);
  await takeOver;
  expect(announce).toHaveBeenCalledWith('http://c', own);
  await others.attempt(item, IDLE);
  expect(urlsOf(attempt)).toEqual(['http://c']);
  // The next attempt is free to run here again.
  expect(await others.attempt(item, IDLE)).toBeUndefined();
}, 15_000);

test('what this gateway still runs for the former leader is awaited, not started again', async () => {
  const { store, others, ownAttempts, attempt } = await start();
  const item = await accepted(store);
  const running = Promise.withResolvers<AttemptEnd | undefined>();
  ownAttempts.set(item.delivery.webhookId, running.promise);
  await others.takeOver();
  const end = others.attempt(item, BUSY);
  running.resolve({ nextAttemptAt: 7000, isUnread: false });
  expect(await end).toEqual({ nextAttemptAt: 7000, isUnread: false });
  expect(attempt).not.toHaveBeenCalled();
});

test('an attempt of the former leader that ended here since the takeover is read from the store', async () => {
  const { store, others, ownAttempts, attempt } = await start();
  const item = await accepted(store);
  const { webhookId } = item.delivery;
  ownAttempts.set(webhookId, Promise.resolve(undefined));
  await others.takeOver();
  ownAttempts.delete(webhookId);
  expect(await others.attempt(item, IDLE)).toEqual({ nextAttemptAt: undefined, isUnread: true });
  expect(attempt).not.toHaveBeenCalled();
  // The copy that was read again is up to date, so its attempt can run here.
  expect(await others.attempt(item, IDLE)).toBeUndefined();
});

test.each<[string, (parts: Awaited<ReturnType<typeof start>>) => Promise<void>]>([
  [
    'refuses calls, because it is stopping',
    async ({ attempt }) => void attempt.mockResolvedValueOnce(undefined),
  ],
  [
    'has left',
    async ({ store, others, c }) => {
      await store.members.leave(c);
      await others.refresh();
    },
  ],
])('an attempt of the former leader is read from the store if its gateway %s', async (_, change) => {
  const parts = await start();
  const { store, others, announce } = parts;
  const item = await accepted(store);
  announce.mockImplementation(async (url) => (url === 'http://c' ? [item.delivery.webhookId] : []));
  await others.takeOver();
  await change(parts);
  expect(await others.attempt(item, IDLE)).toEqual({ nextAttemptAt: undefined, isUnread: true });
  expect(await others.attempt(item, IDLE)).toBeUndefined();
});
