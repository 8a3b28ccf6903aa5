import { expect, onTestFinished, test } from 'vitest';
import {
  connectSource,
  createSource,
  getSource,
  listDeliveries,
  SOURCES_PLUGIN_ID,
  type SourceName,
} from '../../../src/contracts/index.ts';
import { createClient } from '../../../src/http/index.ts';
import { ADMIN_TOKEN, startGateway } from '../../support/gateway.ts';
import { createKillableGateway } from '../../support/gateway-process.ts';
import { sendAsGitHub, startReceiver } from '../../support/source-senders.ts';
import { describeOnStores } from '../../support/stores.ts';

const name = 'gh' as SourceName;
const POLL = { timeout: 60_000, interval: 50 };

/** Calls of an operator to a gateway. */
function clientOf(url: string) {
  const client = createClient({ url, peer: 'gateway' });
  const headers = { authorization: `Bearer ${ADMIN_TOKEN}` };
  const call = ((endpoint, input) => client.call(endpoint, input, { headers })) as typeof client.call;
  async function deliveries() {
    const items = [];
    for (let cursor: string | undefined; ; ) {
      const query = { pluginId: SOURCES_PLUGIN_ID, limit: 200, ...(cursor ? { cursor } : {}) };
      const page = await call(listDeliveries, { query });
      items.push(...page.items);
      if (page.nextCursor === null) return items;
      cursor = page.nextCursor;
    }
  }
  return { call, deliveries };
}

describeOnStores(
  'a source whose gateway is killed',
  (storeConfig) => {
    test('loses no delivery, and stores one for each destination', async () => {
      const receiver = await startReceiver();
      const killable = await createKillableGateway(await storeConfig());
      const { call, deliveries } = clientOf(killable.url);
      let child = await killable.start();
      const { secret } = await call(createSource, { body: { name, provider: 'github' } });
      const url = `${killable.url}/in/default/gh`;
      const retry = { maxAttempts: 20, backoff: { initialMs: 50, factor: 1 } };
      for (const destination of ['a', 'b', 'c'])
        await call(connectSource, {
          params: { name },
          body: { name: destination, forward: `${receiver.url}/${destination}`, retry },
        });
      const DELIVERIES = 90;
      for (let n = 0; n < DELIVERIES; n++) {
        // The sender repeats a delivery until it is answered, as GitHub's users do by hand.
        const sent = () =>
          sendAsGitHub(url, secret, { n }, `d-${n}`).then(
            ({ status }) => status,
            () => 0,
          );
        const first = sent();
        if (n % 30 === 15) {
          // Without the last answer: the kill can hit the commit, the fan-out or an attempt.
          child.kill('SIGKILL');
          await first;
          child = await killable.start();
        }
        if (![200, 202].includes(await first)) await expect.poll(sent, POLL).toBeLessThan(203);
      }
      const open = async () => (await deliveries()).filter(({ status }) => status !== 'succeeded');
      await expect
        .poll(
          async () => (await open()).filter(({ status }) => !['duplicate', 'interrupted'].includes(status)),
          POLL,
        )
        .toEqual([]);
      const all = (await deliveries()).filter(({ status }) => status === 'succeeded');
      const received = all.filter(({ instanceId }) => instanceId === null);
      const rows = all.filter(({ instanceId }) => instanceId !== null);
      expect([received.length, rows.length]).toEqual([DELIVERIES, 3 * DELIVERIES]);
      expect(new Set(rows.map(({ replayOf, instanceId }) => `${replayOf} ${instanceId}`)).size).toBe(
        rows.length,
      );
      const arrived = new Set(receiver.received.map((request) => `${request.url} ${request.body}`));
      expect(arrived.size).toBe(3 * DELIVERIES);
    });
  },
  { timeout: 240_000 },
);

test('a destination that never answers delays no other, however many deliveries wait for it', async () => {
  const [silent, quick] = [await startReceiver(), await startReceiver()];
  const { promise: end, resolve } = Promise.withResolvers<void>();
  onTestFinished(() => resolve());
  silent.answer = () => end.then(() => ({ status: 200 }));
  const gateway = await startGateway();
  const body = { name, provider: 'github', requestsPerMinute: 100_000 } as const;
  const { url, secret } = await gateway.call(createSource, { body });
  const connect = (destination: string, forward: string) =>
    gateway.call(connectSource, {
      params: { name },
      body: { name: destination, forward, timeoutMs: 600_000, concurrency: 2 },
    });
  await connect('silent', silent.url);
  await connect('quick', quick.url);
  const DELIVERIES = 1500;
  const numbers = Array.from({ length: DELIVERIES }, (_, n) => n);
  const send = async (): Promise<void> => {
    for (let n = numbers.shift(); n !== undefined; n = numbers.shift())
      expect((await sendAsGitHub(url, secret, { n }, `d-${n}`)).status).toBe(202);
  };
  await Promise.all(Array.from({ length: 16 }, send));
  await expect.poll(() => quick.received.length, POLL).toBe(DELIVERIES);
  expect(silent.received.length).toBe(2);
  const { counted, destinations } = await gateway.call(getSource, { params: { name } });
  expect(counted).toEqual({ deliveries: 1000, complete: false });
  expect(destinations.map((destination) => destination.name)).toEqual(['quick', 'silent']);
  resolve();
  await expect.poll(() => silent.received.length, POLL).toBe(DELIVERIES);
}, 240_000);
