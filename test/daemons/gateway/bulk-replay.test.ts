import { expect, test } from 'vitest';
import {
  type CallInput,
  getDelivery,
  listAudit,
  listDeliveries,
  provisionWebhook,
  type ReplyOf,
  replayDeliveries,
} from '../../../src/contracts/index.ts';
import { createClient } from '../../../src/http/index.ts';
import type { KeyValueStore } from '../../../src/store/ports/index.ts';
import { ADMIN_TOKEN, deliver, OTHER_TOKEN, type TestGateway } from '../../support/gateway.ts';
import { createKillableGateway } from '../../support/gateway-process.ts';
import { describeOnStores } from '../../support/stores.ts';
import { eventually, SENDERS, secretOf, send, startSenders } from '../../support/webhook-senders.ts';

type Body = CallInput<typeof replayDeliveries>['body'];

const POLL = { timeout: 30_000, interval: 20 };

/** A gateway with failed deliveries, whose handlers succeed when they run again. */
async function withFailed(config: object, ns: readonly string[]) {
  const gateway = await startSenders({ config: { ...config } });
  const secret = await secretOf(gateway, 'sync');
  const ids: string[] = [];
  for (const n of ns) {
    const { headers } = await send(gateway, 'sync', secret, { id: n, n, failTimes: 1 });
    ids.push(headers.get('x-webhook-id')!);
  }
  return { gateway, secret, ids };
}

/** The cache that holds the claims of bulk replays. */
const cacheOf = (gateway: TestGateway): KeyValueStore =>
  (gateway.services as { store: { cache: KeyValueStore } }).store.cache;

/** Ids of the deliveries that were replayed, once for each replay. */
async function replayed(gateway: Pick<TestGateway, 'call'>): Promise<string[]> {
  const { items } = await gateway.call(listDeliveries, { query: { limit: 200 } });
  return items.flatMap(({ replayOf }) => replayOf ?? []);
}

describeOnStores(
  'bulk replays',
  (config) => {
    test('a dry run counts, changes nothing, and pins what the replay includes', async () => {
      const { gateway, secret, ids } = await withFailed(await config(), ['a', 'b', 'c', 'd', 'e']);
      const body: Body = { status: ['failed', 'dead'], pluginId: 'senders' as never };
      const dry = await gateway.call(replayDeliveries, { body: { ...body, dryRun: true } });
      expect(dry.matching).toMatchObject({ count: 5, isComplete: true });
      expect(dry.matching!.sample.map(({ webhookId }) => webhookId)).toEqual(ids);
      expect([dry.items, await replayed(gateway)]).toEqual([[], []]);
      expect((await gateway.call(listAudit)).items.map(({ action }) => action)).not.toContain(
        'delivery.replay',
      );

      await send(gateway, 'sync', secret, { id: 'late', n: 'late', failTimes: 1 });
      const replies: Array<ReplyOf<typeof replayDeliveries>> = [];
      for (let cursor = dry.nextCursor; cursor !== null; cursor = replies.at(-1)!.nextCursor)
        replies.push(await gateway.call(replayDeliveries, { body: { ...body, limit: 2, cursor } }));
      expect(replies.map(({ items }) => items.length)).toEqual([2, 2, 1]);
      expect((await replayed(gateway)).toSorted()).toEqual(ids.toSorted());
      // A repeated call finds what was done.
      const again = await gateway.call(replayDeliveries, { body: { ...body, cursor: dry.nextCursor! } });
      expect([again.items.length, again.skipped]).toEqual([0, 5]);
      expect(await replayed(gateway)).toHaveLength(5);
    });

    test.each([{}, { search: 'same-text' }])(
      'a replay stops at the end of its time range, also with the filter %j',
      async (more) => {
        const { gateway, secret, ids } = await withFailed(await config(), ['same-text-1', 'same-text-2']);
        const { receivedAt } = await gateway.call(getDelivery, { params: { webhookId: ids[1]! } });
        const until = receivedAt + 1;
        gateway.clock.advance(1000);
        await send(gateway, 'sync', secret, { id: 'same-text-3', n: 'same-text-3', failTimes: 1 });
        const body: Body = { ...more, since: 0, until };
        const dry = await gateway.call(replayDeliveries, { body: { ...body, dryRun: true } });
        expect(dry.matching).toMatchObject({ count: 2, isComplete: true });
        await gateway.call(replayDeliveries, { body: { ...body, cursor: dry.nextCursor! } });
        expect((await replayed(gateway)).toSorted()).toEqual(ids.toSorted());
      },
    );

    test('a text, ids and succeeded deliveries select too; other namespaces do not', async () => {
      const { gateway, ids } = await withFailed(await config(), ['unique-text', 'b', 'c']);
      const found = await gateway.call(replayDeliveries, { body: { search: 'unique-text' } });
      expect(found.items.map(({ replayOf }) => replayOf)).toEqual([ids[0]]);
      const webhookIds = [ids[1]!, ids[0]!];
      const foreign = await gateway.call(replayDeliveries, { body: { webhookIds } }, OTHER_TOKEN);
      expect([foreign.items, foreign.refused.map(({ error }) => error.code)]).toEqual([
        [],
        ['DELIVERY_NOT_FOUND', 'DELIVERY_NOT_FOUND'],
      ]);
      const chosen = await gateway.call(replayDeliveries, { body: { webhookIds } });
      expect([chosen.items.map(({ replayOf }) => replayOf), chosen.skipped]).toEqual([[ids[1]], 1]);
      for (const filter of [{ search: 'text' }, { status: 'failed' }] as const)
        await expect(
          gateway.call(replayDeliveries, { body: { webhookIds, ...filter } }),
        ).rejects.toMatchObject({ code: 'VALIDATION_ERROR' });

      const replay = chosen.items[0]!.webhookId;
      await eventually(async () => {
        const { status } = await gateway.call(getDelivery, { params: { webhookId: replay } });
        expect(status).toBe('succeeded');
      });
      const succeeded = await gateway.call(replayDeliveries, {
        body: { status: 'succeeded', search: '"n":"b"' },
      });
      expect(succeeded.items.map(({ replayOf }) => replayOf)).toEqual([replay]);
    });

    test('a delivery that a dead call has claimed is not skipped', async () => {
      const { gateway, ids } = await withFailed(await config(), ['a', 'b']);
      const { nextCursor } = await gateway.call(replayDeliveries, { body: { dryRun: true } });
      await cacheOf(gateway).setIfAbsent('webhook-replay', ids[0]!, 'dead', 60_000);
      const call = () => gateway.call(replayDeliveries, { body: { cursor: nextCursor! } });
      expect(await call()).toMatchObject({ items: [], skipped: 0, paused: { code: 'CONFLICT' } });
      await cacheOf(gateway).delete('webhook-replay', ids[0]!);
      expect(await call()).toMatchObject({ items: [{}, {}], paused: null, nextCursor: null });
    });

    test('killed in the midst, a bulk replay continues with its cursor: nothing is lost or repeated', async () => {
      const project = { plugins: [`${SENDERS}/plugins/*`], ...(await config()) };
      const killable = await createKillableGateway(project);
      const client = createClient({ url: killable.url, peer: 'gateway' });
      const headers = { authorization: `Bearer ${ADMIN_TOKEN}` };
      const call: TestGateway['call'] = (endpoint, input) => client.call(endpoint, input, { headers });
      let child = await killable.start();
      const target = { pluginId: 'senders', event: 'sync' } as never;
      const { secret } = await call(provisionWebhook, { body: target });
      const ids: string[] = [];
      for (let n = 0; n < 40; n++) {
        const payload = { id: `n${n}`, n: `n${n}`, do: 'fail' };
        const delivered = await deliver(killable, {
          ...{ pluginId: 'senders', event: 'sync', secret, payload },
        });
        ids.push(delivered.headers.get('x-webhook-id')!);
      }
      const { matching, nextCursor } = await call(replayDeliveries, { body: { dryRun: true } });
      expect(matching?.count).toBe(40);
      let kills = 0;
      for (let cursor = nextCursor; cursor !== null; ) {
        const before = (await replayed({ call })).length;
        let reply: ReplyOf<typeof replayDeliveries> | undefined;
        const batch = call(replayDeliveries, { body: { cursor, limit: 15 } }).then(
          (answer) => (reply = answer),
          () => undefined,
        );
        if (kills < 2) {
          const hasBegun = async () => reply !== undefined || (await replayed({ call })).length > before;
          await expect.poll(hasBegun, { ...POLL, interval: 1 }).toBe(true);
          child.kill('SIGKILL');
          kills++;
          child = await killable.start();
        }
        await batch;
        if (reply) cursor = reply.nextCursor;
      }
      expect((await replayed({ call })).toSorted()).toEqual(ids.toSorted());
    });
  },
  { timeout: 120_000 },
);
