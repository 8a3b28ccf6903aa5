import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { announceScheduler, noticeDeliveries, runDeliveryAttempt } from '../../../src/contracts/index.ts';
import type { GatewayServices } from '../../../src/daemons/gateway/services.ts';
import { serviceKey } from '../../../src/kit/security/keys.ts';
import type { AnyJson } from '../../support/any-json.ts';
import { TEST_KEYS, tempDir } from '../../support/daemon.ts';
import { placeEmptyDatabase } from '../../support/empty-database.ts';
import { deliver, handlerRuns, provision, startGateway, type TestGateway } from '../../support/gateway.ts';
import { delivery } from '../../support/new-delivery.ts';

const PROJECT = fileURLToPath(new URL('../../fixtures/projects/deliveries', import.meta.url));

const servicesOf = (node: TestGateway): GatewayServices => node.services as GatewayServices;

/** Starts nodes on one store. The first one becomes the leader. */
async function nodes(...instances: string[]): Promise<TestGateway[]> {
  const dataDir = await tempDir();
  await placeEmptyDatabase('gateway', dataDir);
  const started: TestGateway[] = [];
  for (const instance of instances)
    started.push(
      await startGateway({
        projectDir: PROJECT,
        dataDir,
        sharesStore: true,
        env: { SVC_INSTANCE: instance },
      }),
    );
  return started;
}

interface Run {
  n: number;
  account: string | null;
  began: number;
  ended: number;
}

/** Runs of the handler on all nodes, in the order in which they began. */
function runsOf(all: readonly TestGateway[]): Run[] {
  const lines = all.flatMap(({ logs }) => logs.lines.filter(({ message }) => message === 'handled'));
  return lines.map(({ meta }) => meta as unknown as Run).sort((a, b) => a.began - b.began);
}

/** Sends payloads to the nodes in turn, each after the 202 of the one before. Returns the secret of the webhook. */
async function send(
  all: readonly TestGateway[],
  event: string,
  payloads: readonly object[],
  provisioned?: string,
): Promise<string> {
  const secret = provisioned ?? (await provision(all[0]!, event));
  for (const [index, payload] of payloads.entries()) {
    const { status } = await deliver(all[index % all.length]!, { event, secret, payload });
    expect(status).toBe(202);
  }
  return secret;
}

const statusesOf = async (node: TestGateway): Promise<string[]> =>
  (await servicesOf(node).store.inbox.list('default', { limit: 100 })).items.map(({ status }) => status);

const allSucceeded = (node: TestGateway, count: number) =>
  expect.poll(() => statusesOf(node), { timeout: 20_000 }).toEqual(Array(count).fill('succeeded'));

const numbered = (count: number, more: object = {}) =>
  Array.from({ length: count }, (_, n) => ({ n, ...more }));

test('handlers run on all gateways of the store, each delivery once', async () => {
  const all = await nodes('a', 'b');
  await send(all, 'free', numbered(16, { sleepMs: 300 }));
  await allSucceeded(all[0]!, 16);
  expect(
    runsOf(all)
      .map(({ n }) => n)
      .sort((a, b) => a - b),
  ).toEqual(numbered(16).map(({ n }) => n));
  for (const node of all) expect(handlerRuns(node)).toBeGreaterThan(0);
}, 30_000);

test('a gateway that is about to stop gets no further deliveries of the leader', async () => {
  const all = await nodes('a', 'b');
  const [leader, leaving] = all as [TestGateway, TestGateway];
  const secret = await send(all, 'free', numbered(16, { sleepMs: 300 }));
  await allSucceeded(leader, 16);
  const before = handlerRuns(leaving);
  expect(before).toBeGreaterThan(0);
  leaving.becomeUnready();
  await send([leader], 'free', numbered(16, { sleepMs: 300 }), secret);
  await allSucceeded(leader, 32);
  expect(handlerRuns(leaving)).toBe(before);
}, 30_000);

test('deliveries of one order key run one after another, on whichever gateway', async () => {
  const all = await nodes('a', 'b');
  const payloads = numbered(12, { sleepMs: 30 }).map((payload) => ({
    ...payload,
    account: `k${payload.n % 3}`,
  }));
  await send(all, 'ordered', payloads);
  await allSucceeded(all[0]!, 12);
  for (const [account, runs] of Map.groupBy(runsOf(all), (run) => run.account)) {
    expect(
      runs.map(({ n }) => n),
      String(account),
    ).toEqual(runs.map(({ n }) => n).sort((a, b) => a - b));
    for (const [index, run] of runs.slice(1).entries())
      expect(run.began).toBeGreaterThanOrEqual(runs[index]!.ended);
  }
}, 30_000);

test('the concurrency limit of a webhook holds over all gateways', async () => {
  const all = await nodes('a', 'b');
  await send(all, 'limited', numbered(10, { sleepMs: 100 }));
  await allSucceeded(all[0]!, 10);
  const runs = runsOf(all);
  for (const { began } of runs)
    expect(runs.filter((other) => other.began <= began && began < other.ended).length).toBeLessThanOrEqual(2);
}, 30_000);

test('when the leader stops, the next gateway schedules, and nothing that still runs starts again', async () => {
  const all = await nodes('a', 'b', 'c');
  const [a, b, c] = all as [TestGateway, TestGateway, TestGateway];
  // The nine run at once although the first process of each gateway starts late on a loaded machine.
  const secret = await send(all, 'free', numbered(9, { sleepMs: 5000 }));
  await expect.poll(() => servicesOf(a).dispatcher.load.running, { timeout: 10_000 }).toBe(9);
  await a.close();
  await allSucceeded(b, 9);
  await send([b, c], 'free', numbered(2, { sleepMs: 1 }), secret);
  await allSucceeded(c, 11);
  expect(runsOf(all)).toHaveLength(11);
}, 40_000);

describe('requests of the scheduler', () => {
  const headers = {
    'content-type': 'application/json',
    'x-internal-secret': TEST_KEYS.internalSecret,
    'x-svc-service-key': serviceKey(TEST_KEYS.internalSecret),
  };
  const post = (node: TestGateway, path: string, body: unknown, sent: Record<string, string> = headers) =>
    node.fetch(path, { method: 'POST', headers: sent, body: JSON.stringify(body) });
  const attempt = { scheduler: 1, webhookId: '0197fd3a-0000-7000-8000-000000000001', attempts: 0 };

  test('need the internal secret and the service key', async () => {
    const [node] = (await nodes('a')) as [TestGateway];
    const { 'x-svc-service-key': _, ...withoutKey } = headers;
    const wrong = { ...headers, 'x-internal-secret': 'x'.repeat(40) };
    const { 'x-internal-secret': __, ...withoutSecret } = headers;
    for (const sent of [withoutKey, withoutSecret, wrong])
      for (const path of [runDeliveryAttempt.path, announceScheduler.path, noticeDeliveries.path]) {
        const refused = await post(node, path, attempt, sent);
        expect([refused.status, ((await refused.json()) as AnyJson).error.code]).toEqual([403, 'FORBIDDEN']);
      }
  });

  test('are refused by a gateway that follows a later scheduler', async () => {
    const [node] = (await nodes('a')) as [TestGateway];
    expect(await (await post(node, announceScheduler.path, { scheduler: 7 })).json()).toEqual({
      running: [],
    });
    const { inbox } = servicesOf(node).store;
    const stored = delivery({ pluginId: '@acme/orders', event: 'free', webhookId: attempt.webhookId });
    // A node that is not the leader would not start it by itself, so it is stored as ended.
    await inbox.begin({ ...stored, mode: 'sync' }, undefined);
    const refused = await post(node, runDeliveryAttempt.path, { ...attempt, scheduler: 6 });
    expect(await refused.json()).toEqual({ isRefused: true, isUnread: false, nextAttemptAt: null });
    const known = await post(node, runDeliveryAttempt.path, { ...attempt, scheduler: 7 });
    expect(await known.json()).toEqual({ isRefused: false, isUnread: false, nextAttemptAt: null });
    expect(handlerRuns(node)).toBe(0);
  });

  test.each([
    ['no fence', { ...attempt, scheduler: undefined }],
    ['an id that is no UUID', { ...attempt, webhookId: 'x' }],
    ['negative attempts', { ...attempt, attempts: -1 }],
  ])('with %s are refused as invalid', async (_, body) => {
    const [node] = (await nodes('a')) as [TestGateway];
    const refused = await post(node, runDeliveryAttempt.path, body);
    expect([refused.status, ((await refused.json()) as AnyJson).error.code]).toEqual([
      400,
      'VALIDATION_ERROR',
    ]);
  });
});
