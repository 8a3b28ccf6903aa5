import { randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test, vi } from 'vitest';
import {
  ackItems,
  configureQueue,
  createClientCredentials,
  deleteItem,
  exchangeToken,
  extendLeases,
  getQueue,
  getQueueItem,
  leaseItems,
  listQueueItems,
  listQueues,
  nackItems,
  purgeQueue,
  putItem,
  retryDeadItems,
  retryItem,
} from '../../../src/contracts/index.ts';
import type { GatewayServices } from '../../../src/daemons/gateway/services.ts';
import { type ManualClock, systemClock } from '../../../src/kit/time/clock.ts';
import { ADMIN_TOKEN, OTHER_TOKEN, startGateway, type TestGateway } from '../../support/gateway.ts';
import { describeOnStores } from '../../support/stores.ts';

const params = { name: 'orders' };

function programOn(gateway: TestGateway, name = 'orders') {
  const queue = { params: { name } };
  return {
    put: (body: object) => gateway.call(putItem, { ...queue, body }),
    lease: async (body: object = {}) => (await gateway.call(leaseItems, { ...queue, body })).items,
    ack: async (leaseIds: string[]) => (await gateway.call(ackItems, { ...queue, body: { leaseIds } })).items,
    nack: async (body: { leaseIds: string[]; delayMs?: number; error?: string }) =>
      (await gateway.call(nackItems, { ...queue, body })).items,
    show: () => gateway.call(getQueue, queue),
    servicesOf: gateway.services as GatewayServices,
  };
}

describeOnStores(
  'queues',
  (config) => {
    const start = async (more: object = {}): Promise<TestGateway> => {
      const store = await config();
      const shares = { sharesStore: 'store' in store };
      return startGateway({ clock: systemClock as ManualClock, config: { ...store, ...more }, ...shares });
    };

    test('a program leases items, and every byte of their bodies reaches it', async () => {
      const { put, lease, ack, servicesOf } = programOn(await start());
      await put({ id: 'json', body: { n: 1 }, headers: { 'X-Test': 'a' } });
      await put({ id: 'bytes', bodyBase64: Buffer.from([255, 0]).toString('base64') });
      const large = '{"n": 12345678901234567890}';
      await servicesOf.queues.put({
        ...{ namespaceId: 'default', queue: 'orders', id: 'large', deliveryId: 'd1', orderKey: null },
        ...{ headers: '[["X-A","1"],["x-a","2"]]', body: Buffer.from(large), receivedAt: 1 },
      });
      expect(await put({ id: 'json', body: 2 })).toEqual({ id: 'json', added: false });
      const [json, bytes, number, ...rest] = await lease({ max: 10 });
      expect(rest).toEqual([]);
      const { leaseId, receivedAt, leasedUntil, ...item } = json!;
      expect(item).toEqual({
        ...{ id: 'json', deliveryId: null, orderKey: null, attempt: 1, body: { n: 1 } },
        headers: { 'content-type': 'application/json', 'x-test': 'a' },
      });
      expect(leasedUntil - receivedAt).toBeGreaterThan(29_000);
      expect(bytes).toMatchObject({ body: null, bodyBase64: '/wA=' });
      const bodyBase64 = Buffer.from(large).toString('base64');
      expect(number).toMatchObject({ deliveryId: 'd1', body: JSON.parse(large), bodyBase64 });
      expect(number!.headers).toEqual({ 'x-a': '1, 2' });
      const acked = { leaseId, status: 'acked', error: null };
      const lost = { leaseId: 'none', status: null, error: { code: 'LEASE_LOST' } };
      expect(await ack([leaseId, 'none', leaseId])).toMatchObject([acked, lost]);
      expect(await ack([leaseId])).toEqual([acked]);
    });

    test('queues without room refuse items until others are acknowledged', async () => {
      const { put, lease, ack } = programOn(await start({ retention: { deliveriesMaxBytes: 10_000 } }));
      const bodyBase64 = Buffer.alloc(4000).toString('base64');
      await put({ bodyBase64 });
      await put({ bodyBase64 });
      await expect(put({ bodyBase64 })).rejects.toMatchObject({ code: 'SERVICE_UNAVAILABLE' });
      const [item] = await lease();
      await ack([item!.leaseId]);
      await expect.poll(() => put({ bodyBase64 }).catch(() => undefined)).toMatchObject({ added: true });
    });

    test('texts with NUL are refused, or name no lease', async () => {
      const { put, ack, nack } = programOn(await start());
      await put({ body: 1 });
      for (const item of [{ id: 'a\0' }, { orderKey: '\0' }])
        await expect(put({ body: 1, ...item })).rejects.toMatchObject({ code: 'VALIDATION_ERROR' });
      const failed = nack({ leaseIds: ['1.a'], error: '\0' });
      await expect(failed).rejects.toMatchObject({ code: 'VALIDATION_ERROR' });
      expect(await ack(['1.a\0'])).toMatchObject([{ error: { code: 'LEASE_LOST' } }]);
    });

    test('order keys of any length keep the order', async () => {
      const { lease, ack, servicesOf } = programOn(await start());
      const put = (id: string, orderKey: string) =>
        servicesOf.queues.put({
          ...{ namespaceId: 'default', queue: 'orders', id, deliveryId: null, orderKey },
          ...{ headers: '[]', body: Buffer.from('1'), receivedAt: 1 },
        });
      const long = randomBytes(20_000).toString('hex');
      for (const [id, key] of [
        ['a', long],
        ['b', long],
        ['c', `${long}!`],
      ] as const)
        await put(id, key);
      const items = await lease({ max: 10 });
      expect(items.map(({ id }) => id)).toEqual(['a', 'c']);
      await ack([items[0]!.leaseId]);
      expect(await lease({ max: 10 })).toMatchObject([{ id: 'b' }]);
    });

    test('exact bytes are added on demand', async () => {
      const { put, lease } = programOn(await start());
      await put({ body: 'ä' });
      expect(await lease({ raw: true })).toMatchObject([
        { body: 'ä', bodyBase64: Buffer.from('"ä"').toString('base64') },
      ]);
    });

    test('a waiting call gets an item as soon as it is put, delayed items when they are due', async () => {
      const { put, lease, servicesOf } = programOn(await start());
      const [first, second] = [lease({ waitMs: 20_000, max: 5 }), lease({ waitMs: 20_000 })];
      await vi.waitFor(() => expect(servicesOf.queueWaits.waiting).toBe(2));
      await put({ id: 'a', body: 1 });
      await put({ id: 'b', body: 1, delayMs: 300 });
      const ids = (await Promise.all([first, second])).map((items) => items.map(({ id }) => id));
      expect(ids.sort()).toEqual([['a'], ['b']]);
      expect(await lease({ waitMs: 50 })).toEqual([]);
      expect(servicesOf.queueWaits.waiting).toBe(0);
    });

    test('a waiting call ends with its client and with the gateway', async () => {
      const gateway = await start();
      const { put, lease, servicesOf } = programOn(gateway);
      const leaving = new AbortController();
      const request = fetch(`${gateway.url}/api/v1/queues/orders/lease`, {
        method: 'POST',
        headers: { authorization: `Bearer ${ADMIN_TOKEN}`, 'content-type': 'application/json' },
        body: '{"waitMs":30000}',
        signal: leaving.signal,
      });
      const ended = expect(request).rejects.toThrow();
      await vi.waitFor(() => expect(servicesOf.queueWaits.waiting).toBe(1));
      leaving.abort();
      await ended;
      await vi.waitFor(() => expect(servicesOf.queueWaits.waiting).toBe(0));
      await put({ id: 'a', body: 1 });
      expect(await lease()).toMatchObject([{ id: 'a', attempt: 1 }]);
      const waiting = lease({ waitMs: 30_000 });
      await vi.waitFor(() => expect(servicesOf.queueWaits.waiting).toBe(1));
      const stopped = gateway.close();
      expect(await waiting).toEqual([]);
      await stopped;
    });

    test('failed items wait, become dead, and are retried one by one or together', async () => {
      const gateway = await start({ queues: { orders: { maxAttempts: 1, order: 'none' } } });
      const { put, lease, nack, show } = programOn(gateway);
      for (const id of ['a', 'b', 'c']) await put({ id, body: 1, orderKey: 'same' });
      const leased = await lease({ max: 3 });
      expect(leased).toHaveLength(3);
      const leaseIds = leased.map(({ leaseId }) => leaseId);
      expect(await nack({ leaseIds, error: 'no stock' })).toEqual(
        leaseIds.map((leaseId) => ({ leaseId, status: 'dead', availableAt: null, error: null })),
      );
      expect(await nack({ leaseIds: [leaseIds[0]!] })).toMatchObject([{ error: { code: 'LEASE_LOST' } }]);
      expect(await show()).toMatchObject({ waiting: 0, dead: 3, settingsFrom: 'config' });
      const page = await gateway.call(listQueueItems, { params, query: { status: 'dead', limit: 2 } });
      expect(page.items).toMatchObject([{ lastError: 'no stock' }, {}]);
      const last = await gateway.call(listQueueItems, { params, query: { cursor: page.nextCursor! } });
      expect([last.items.length, last.nextCursor]).toEqual([1, null]);
      expect(await gateway.call(retryItem, { params: { ...params, id: 'a' } })).toMatchObject({
        status: 'waiting',
      });
      await expect(gateway.call(retryItem, { params: { ...params, id: 'a' } })).rejects.toMatchObject({
        code: 'CONFLICT',
      });

      const dry = await gateway.call(retryDeadItems, { params, body: { dryRun: true } });
      expect(dry).toMatchObject({ items: [], matching: { count: 2, isComplete: true } });
      await sleep(2);
      const [again] = await lease();
      await nack({ leaseIds: [again!.leaseId] });
      const retried: string[] = [];
      for (let cursor = dry.nextCursor; cursor; ) {
        const batch = await gateway.call(retryDeadItems, { params, body: { cursor, limit: 1 } });
        retried.push(...batch.items.map(({ id }) => id));
        cursor = batch.nextCursor;
      }
      expect(retried.sort()).toEqual(['b', 'c']);
      expect(await show()).toMatchObject({ waiting: 2, dead: 1 });
    });

    test('items are shown with their content and deleted, and purges delete a status', async () => {
      const gateway = await start();
      const { put, lease, ack, show } = programOn(gateway);
      for (const id of ['a', 'b', 'c']) await put({ id, body: { id } });
      const item = (id: string) => ({ params: { ...params, id } });
      expect(await gateway.call(getQueueItem, item('a'))).toMatchObject({
        status: 'waiting',
        content: { body: { id: 'a' } },
      });
      const [leased] = await lease();
      await expect(gateway.call(deleteItem, item('a'))).rejects.toMatchObject({ code: 'CONFLICT' });
      await ack([leased!.leaseId]);
      expect(await gateway.call(getQueueItem, item('a'))).toMatchObject({ status: 'acked', content: null });
      expect(await gateway.call(deleteItem, item('b'))).toEqual({ deleted: true });
      await expect(gateway.call(getQueueItem, item('b'))).rejects.toMatchObject({ code: 'NOT_FOUND' });
      expect(await gateway.call(purgeQueue, { params, query: { status: 'waiting' } })).toEqual({
        deleted: 1,
        more: false,
      });
      expect(await show()).toMatchObject({ waiting: 0, leased: 0, dead: 0, oldestAgeMs: null });
    });

    test('settings are changed by API, and those of svc.config.json are not', async () => {
      const gateway = await start({ queues: { fixed: { order: 'queue' } } });
      const { put, lease } = programOn(gateway);
      const settings = { maxAttempts: 2, concurrency: 1, maxLeaseMs: 5000 };
      const changed = await gateway.call(configureQueue, { params, body: settings });
      expect(changed).toMatchObject({ settings: { ...settings, order: 'key' }, settingsFrom: 'api' });
      await put({ body: 1 });
      await put({ body: 2 });
      expect(await lease({ max: 5 })).toHaveLength(1);
      expect(await lease({ max: 5 })).toHaveLength(0);
      await expect(lease({ leaseMs: 5001 })).rejects.toMatchObject({ code: 'VALIDATION_ERROR' });
      const fixed = { params: { name: 'fixed' }, body: { maxAttempts: 1 } };
      await expect(gateway.call(configureQueue, fixed)).rejects.toMatchObject({ code: 'CONFLICT' });
      const { items } = await gateway.call(listQueues, {});
      expect(items.map(({ name, waiting, leased }) => [name, waiting, leased])).toEqual([
        ['fixed', 0, 0],
        ['orders', 1, 1],
      ]);
      expect((await gateway.call(configureQueue, { params, body: {} })).settingsFrom).toBe('default');
      const ordered = programOn(gateway, 'fixed');
      for (const n of [1, 2]) await ordered.put({ body: n });
      expect(await ordered.lease({ max: 5 })).toMatchObject([{ body: 1 }]);
    });

    test('a client needs the scope of the queue, and other namespaces have other queues', async () => {
      const gateway = await start();
      await programOn(gateway).put({ id: 'a', body: 1 });
      const name = 'worker';
      const made = await gateway.call(createClientCredentials, {
        body: { name, scopes: ['queue:orders'] } as never,
      });
      const { accessToken } = await gateway.call(exchangeToken, {
        body: { clientId: made.clientId, clientSecret: made.clientSecret },
      });
      const call = (queue: string) =>
        gateway.call(leaseItems, { params: { name: queue }, body: {} }, accessToken);
      await expect(call('other')).rejects.toMatchObject({
        code: 'FORBIDDEN',
        details: { neededScope: 'queue:other' },
      });
      await expect(gateway.call(listQueues, {}, accessToken)).rejects.toMatchObject({ code: 'FORBIDDEN' });
      expect((await gateway.call(leaseItems, { params, body: {} }, OTHER_TOKEN)).items).toEqual([]);
      await expect(gateway.call(getQueue, { params }, OTHER_TOKEN)).rejects.toMatchObject({
        code: 'NOT_FOUND',
      });
      const [leased] = (await call('orders')).items;
      expect(leased).toMatchObject({ id: 'a' });
      const leaseIds = [leased!.leaseId];
      const extended = await gateway.call(
        extendLeases,
        { params, body: { leaseIds, leaseMs: 60_000 } },
        accessToken,
      );
      expect(extended.items).toMatchObject([{ status: 'leased', error: null }]);
      expect(extended.items[0]!.leasedUntil).toBeGreaterThan(leased!.leasedUntil);
    });

    test('metrics report the items of each queue', async () => {
      const gateway = await start();
      const { put, lease } = programOn(gateway);
      for (const n of [1, 2]) await put({ body: n });
      await lease();
      const metrics = await (await gateway.fetch('/metrics')).text();
      const labels = 'service="gateway",namespace="default",queue="orders"';
      expect(metrics).toContain(`svc_gateway_queue_items{${labels},status="waiting"} 1`);
      expect(metrics).toContain(`svc_gateway_queue_items{${labels},status="leased"} 1`);
      expect(metrics).toMatch(/svc_gateway_queue_oldest_age_seconds\{[^}]*queue="orders"\} /);
      expect(metrics).toContain(
        'svc_gateway_queue_events_total{service="gateway",queue="orders",event="put"} 2',
      );
    });
  },
  { timeout: 60_000 },
);
