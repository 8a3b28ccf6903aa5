import { mkdir, readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import {
  type AlertKind,
  type CallInput,
  createAlertChannel,
  createAlertRule,
  createEndpoint,
  type Endpoint,
  getMessage,
  listAlerts,
  publishMessage,
  type ReplyOf,
} from '../../../src/contracts/index.ts';
import { createPeers } from '../../../src/daemons/peers.ts';
import { createClient } from '../../../src/http/index.ts';
import { type ManualClock, manualClock, systemClock } from '../../../src/kit/time/clock.ts';
import { minutes } from '../../../src/kit/time/duration.ts';
import { ALL, FAST, PATIENT, until } from '../../support/alert-platform.ts';
import { ClusterGateway, type ClusterGatewayOptions } from '../../support/cluster-gateway.ts';
import { tempDir } from '../../support/daemon.ts';
import { ADMIN_TOKEN, startGateway, type TestGateway } from '../../support/gateway.ts';
import { migratedPostgres } from '../../support/migrated-postgres.ts';
import { POSTGRES_MISSING, POSTGRES_PROGRAMS } from '../../support/postgres.ts';
import { type Receiver, startReceiver } from '../../support/source-senders.ts';
import { cel, startWorkflow } from '../workflow/support/workflow.ts';

const SLOW = { timeout: 180_000 };
const POLL = { timeout: 90_000, interval: 50 };
const CONFIG = {
  ...{ auth: PATIENT, outgoing: { allowPrivateAddresses: true }, alerts: FAST },
  gateway: { publicUrl: 'https://svc.example' },
};
/** Evaluations so far apart that none happens before the kill. */
const ASLEEP = { alerts: { intervalMs: 60_000 } };

/** A gateway in a process of its own with a client. */
async function killable(options: Partial<ClusterGatewayOptions> = {}) {
  const gateway = await ClusterGateway.create({
    ...{ name: 'g1', projectDir: await tempDir(), config: CONFIG },
    ...options,
  });
  const client = createClient({ url: gateway.url, peer: 'gateway' });
  const headers = { authorization: `Bearer ${ADMIN_TOKEN}` };
  const call = <E extends Endpoint>(endpoint: E, input?: CallInput<E>): Promise<ReplyOf<E>> =>
    client.call(endpoint, input, { headers });
  return { gateway, call };
}

type Killable = Awaited<ReturnType<typeof killable>>;

async function observe({ call }: Killable, receiver: Receiver, kind: AlertKind, rule: object = {}) {
  const body = { name: 'hook', type: 'webhook' as const, url: `${receiver.url}/alerts` };
  await call(createAlertChannel, { ...ALL, body });
  const settings = { name: 'observed', kind, channels: ['hook'], groupWaitMs: 0, ...rule };
  await call(createAlertRule, { ...ALL, body: settings as never });
}

/** A receiver whose path `/broken` fails. */
async function startBrokenReceiver(): Promise<Receiver> {
  const receiver = await startReceiver();
  receiver.answer = ({ url }) => ({ status: url === '/broken' ? 500 : 200 });
  return receiver;
}

const createBroken = ({ call }: Killable, { url }: Receiver) =>
  call(createEndpoint, { body: { url: `${url}/broken`, types: ['broken'], retrySchedule: [] } });

/** Publishes a message that the broken endpoint does not take, and waits until it is dead. */
async function failMessage({ call }: Killable): Promise<void> {
  const { id } = await call(publishMessage, { body: { type: 'broken', data: 1 } });
  await expect.poll(async () => (await call(getMessage, { params: { id } })).deliveries.dead, POLL).toBe(1);
}

const sent = (receiver: Receiver) => receiver.received.filter(({ url }) => url === '/alerts');
const contentOf = (receiver: Receiver) =>
  sent(receiver).map(({ body }) => {
    const { type, data } = JSON.parse(body.toString());
    return `${type} ${data.total} ${data.alerts[0].count}`;
  });
const ONCE = ['alert.firing 1 1'];

/** Expects exactly these messages, also after some more evaluations. */
async function expectSent(receiver: Receiver, expected: string[]): Promise<void> {
  await expect.poll(() => contentOf(receiver).length, POLL).toBe(expected.length);
  await new Promise((resolve) => setTimeout(resolve, 500));
  expect(contentOf(receiver)).toEqual(expected);
}

/** Starts the gateway two minutes later, because an attempt owns its notification for a minute. */
async function startLater({ gateway: { dataDir } }: Killable, workflow?: string): Promise<TestGateway> {
  const next = await startGateway({
    ...{ config: CONFIG, dataDir, clock: manualClock(Date.now() + minutes(2)) },
    peers: createPeers(workflow === undefined ? {} : { workflow }),
  });
  onTestFinished(() => next.close());
  return next;
}

const alertsOf = async ({ call }: Pick<Killable, 'call'> | TestGateway) =>
  (await call(listAlerts, { query: { limit: 100 } })).items;

describe('a gateway that is killed', SLOW, () => {
  test('sends the alert of a failure that it had recorded and not evaluated', async () => {
    const it = await killable();
    const receiver = await startBrokenReceiver();
    await it.gateway.start(ASLEEP);
    await observe(it, receiver, 'delivery.failed');
    await createBroken(it, receiver);
    await failMessage(it);
    await it.gateway.kill();
    expect(sent(receiver)).toEqual([]);
    await it.gateway.start();
    await expectSent(receiver, ONCE);
    expect(await alertsOf(it)).toMatchObject([{ count: 1, state: 'firing' }]);
  });

  test('sends an alert that it had recorded and not sent', async () => {
    const it = await killable();
    const receiver = await startBrokenReceiver();
    await it.gateway.start();
    await observe(it, receiver, 'delivery.failed', { groupWaitMs: 3000 });
    await createBroken(it, receiver);
    await failMessage(it);
    await expect.poll(async () => (await alertsOf(it)).length, POLL).toBe(1);
    await it.gateway.kill();
    expect(sent(receiver)).toEqual([]);
    await it.gateway.start();
    await expectSent(receiver, ONCE);
  });

  test('repeats a notification whose answer it has not recorded, with the same id', async () => {
    const it = await killable();
    const receiver = await startBrokenReceiver();
    let answer = (_: { status: number }): void => {};
    receiver.answer = ({ url }) =>
      url === '/broken' ? { status: 500 } : new Promise((resolve) => (answer = resolve));
    await it.gateway.start();
    await observe(it, receiver, 'delivery.failed');
    await createBroken(it, receiver);
    await failMessage(it);
    await expect.poll(() => sent(receiver).length, POLL).toBe(1);
    await it.gateway.kill();
    answer({ status: 200 });
    receiver.answer = () => ({ status: 200 });
    const next = await startLater(it);
    await until(next, () => sent(receiver).length, 2);
    for (let n = 0; n < 20; n++) await until(next, () => sent(receiver).length, 2);
    const [first, second] = sent(receiver);
    expect(second!.headers['webhook-id']).toBe(first!.headers['webhook-id']);
    expect(second!.body).toEqual(first!.body);
  });

  test('sends an alert of each run that failed while it was killed, and counts none twice', async () => {
    const workflow = await startWorkflow({ clock: systemClock as ManualClock });
    const it = await killable({ peers: { workflow: workflow.url } });
    const receiver = await startReceiver();
    await it.gateway.start();
    await observe(it, receiver, 'run.failed', { groupBy: ['object'] });
    const ids: string[] = [];
    const fail = async () => {
      const id = await workflow.start({ id: 'fails', steps: [{ uses: 'set', with: { v: cel('1 / 0') } }] });
      await workflow.until(id, 'failed');
      ids.push(id);
    };
    for (let kills = 0; kills < 4; kills++) {
      for (let n = 0; n < 3; n++) await fail();
      // Moments before, during and after the evaluation of these runs.
      await new Promise((resolve) => setTimeout(resolve, kills * 50));
      await it.gateway.kill();
      await fail();
      if (kills < 3) await it.gateway.start();
    }
    const next = await startLater(it, workflow.url);
    const objects = async () => (await alertsOf(next)).map(({ object }) => object.id).toSorted();
    await until(next, objects, ids.toSorted());
    expect((await alertsOf(next)).every(({ count }) => count === 1)).toBe(true);
    // A notification that was in flight at a kill is sent again with its id.
    const reported = () => [
      ...new Set(sent(receiver).map(({ body }) => JSON.parse(body.toString()).data.alerts[0].object.id)),
    ];
    await until(next, () => reported().toSorted(), ids.toSorted());
    expect(new Set(sent(receiver).map(({ headers }) => headers['webhook-id'])).size).toBe(ids.length);
  });

  test('counts a crash loop once, if it is killed before it deletes the file, and finds later ones', async () => {
    const it = await killable();
    const receiver = await startReceiver();
    await it.gateway.start();
    await observe(it, receiver, 'service.crash_loop');
    const folder = join(it.gateway.dataDir, 'crash-loops');
    await mkdir(folder, { recursive: true });
    const note = (n: number, service: string) => {
      const loop = { service, node: 'n1', crashes: 5, reason: 'exit code 1', at: Date.now() };
      return writeFile(join(folder, `${n}-${service}.json`), JSON.stringify(loop));
    };
    await note(1, 'rest');
    await expectSent(receiver, ONCE);
    await it.gateway.kill();
    // The file is back, as if the kill had come before its deletion.
    await note(1, 'rest');
    await it.gateway.start();
    await expect.poll(() => readdir(folder), POLL).toEqual([]);
    await expectSent(receiver, ONCE);
    await it.gateway.kill();
    await note(2, 'gateway');
    await it.gateway.start();
    await expectSent(receiver, [...ONCE, 'alert.firing 2 1']);
    expect((await alertsOf(it)).map(({ count }) => count)).toEqual([1, 1]);
  });
});

describe.skipIf(!POSTGRES_PROGRAMS)(POSTGRES_PROGRAMS ? 'two gateways' : POSTGRES_MISSING, SLOW, () => {
  test('send each alert once, also if the one that evaluates is killed before it sends', async () => {
    const config = { ...CONFIG, store: { url: await migratedPostgres() } };
    const projectDir = await tempDir();
    const leader = await killable({ name: 'g1', config, projectDir });
    const other = await killable({ name: 'g2', config, projectDir });
    const receiver = await startBrokenReceiver();
    await leader.gateway.start();
    await other.gateway.start();
    await observe(leader, receiver, 'delivery.failed', { groupBy: ['object'], groupWaitMs: 2000 });
    await createBroken(leader, receiver);
    for (const each of [leader, other]) await failMessage(each);
    await expectSent(receiver, [...ONCE, ...ONCE]);

    await failMessage(other);
    await expect.poll(async () => (await alertsOf(other)).length, POLL).toBe(3);
    await leader.gateway.kill();
    expect(contentOf(receiver)).toHaveLength(2);
    await expectSent(receiver, [...ONCE, ...ONCE, ...ONCE]);
    await failMessage(other);
    await expectSent(receiver, [...ONCE, ...ONCE, ...ONCE, ...ONCE]);
    const ids = new Set(sent(receiver).map(({ headers }) => headers['webhook-id']));
    expect(ids.size).toBe(4);
  });
});
