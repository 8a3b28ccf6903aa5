import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { days, seconds } from '../../../src/kit/time/duration.ts';
import type {
  LeaseChange,
  LeaseRequest,
  NewQueueItem,
  QueueItemRecord,
  QueueStore,
} from '../../../src/store/ports/index.ts';
import { QUEUE_ITEM_BYTES } from '../../../src/store/ports/queues.ts';
import { EXPIRED, nackDelayMs, statusOf } from '../../../src/store/queue-rules.ts';
import { type DriverBench, type OpenDriver, openFresh, times } from './driver.ts';
import { QueueModel } from './queue-model.ts';

const KEY = { namespaceId: 'acme', queue: 'orders' };
const LIMITS = { maxAttempts: 10, concurrency: null };
const ACK: LeaseChange = { kind: 'ack' };

let leases = 0;

function newItem(id: string, more: Partial<NewQueueItem> = {}): NewQueueItem {
  return {
    ...KEY,
    ...{ id, deliveryId: `delivery of ${id}`, headers: '[["a","b"]]', body: Buffer.from(`body of ${id}`) },
    ...{ orderKey: null, receivedAt: 1 },
    ...more,
  };
}

function request(more: Partial<LeaseRequest> = {}): LeaseRequest {
  return {
    ...KEY,
    ...LIMITS,
    max: 100,
    maxBytes: 1e6,
    leaseMs: seconds(30),
    token: `token${leases++}`,
    ...more,
  };
}

/** @spec docs/queues.md */
export function describeQueues(name: string, open: OpenDriver<QueueStore>): void {
  describe(`queues: ${name}`, { timeout: 120_000 }, () => {
    const settle = (port: QueueStore, leaseIds: string[], change: LeaseChange, maxAttempts = 10) =>
      port.settle(KEY, leaseIds, change, { ...LIMITS, maxAttempts });
    const idsOf = (items: readonly { id: string }[]): string[] => items.map(({ id }) => id);

    test('leases give out items in their order, with the bytes that were put', async () => {
      const { port, clock, reopen } = await openFresh(open);
      const body = Buffer.from([0, 255, 254, 10]);
      const large = Buffer.alloc(100_000, 'x');
      expect(await port.lease(request())).toEqual([]);
      expect(await port.put(newItem('one', { body, orderKey: 'k', receivedAt: 7 }))).toBe(true);
      expect(await port.put(newItem('two', { body: large }))).toBe(true);
      expect(await port.put(newItem('one'))).toBe(false);
      const again = await reopen();
      const [one, two, ...rest] = await again.lease(request());
      expect(rest).toEqual([]);
      const { leaseId, ...given } = one!;
      expect({ ...given, body: Buffer.from(given.body) }).toEqual({
        ...{ id: 'one', deliveryId: 'delivery of one', orderKey: 'k', attempt: 1, receivedAt: 7 },
        ...{ leasedUntil: clock.now() + seconds(30), headers: '[["a","b"]]', body },
      });
      expect(Buffer.from(two!.body).equals(large)).toBe(true);
      expect(await again.lease(request())).toEqual([]);
      const acked = { outcome: 'acked', until: null };
      expect(await settle(again, [leaseId, two!.leaseId, 'unknown'], ACK)).toEqual([
        acked,
        acked,
        { outcome: 'lost', until: null },
      ]);
      expect(await settle(again, [leaseId], ACK)).toEqual([acked]);
      expect(await again.put(newItem('one'))).toBe(false);
      expect(await again.find(KEY, 'one')).not.toHaveProperty('body');
    });

    test('the usage of a namespace counts the items that are not acked', async () => {
      const { port } = await openFresh(open);
      expect(await port.usage('acme')).toEqual({ queues: 0, bytes: 0 });
      const sizeOf = (body: number) => QUEUE_ITEM_BYTES + '[["a","b"]]'.length + body;
      for (const id of ['a', 'b', 'c']) await port.put(newItem(id, { body: Buffer.alloc(10_000) }));
      await port.put(newItem('a', { queue: 'other', body: Buffer.alloc(1) }));
      await port.put(newItem('a', { namespaceId: 'elsewhere' }));
      expect(await port.usage('acme')).toEqual({ queues: 2, bytes: 3 * sizeOf(10_000) + sizeOf(1) });
      const [first, second] = await port.lease(request());
      await settle(port, [first!.leaseId], ACK);
      await settle(port, [second!.leaseId], { kind: 'nack', delayMs: null, error: null }, 1);
      expect(await port.usage('acme')).toEqual({ queues: 2, bytes: 2 * sizeOf(10_000) + sizeOf(1) });
      await port.purge(KEY, 'dead', 10);
      expect(await port.usage('acme')).toEqual({ queues: 2, bytes: sizeOf(10_000) + sizeOf(1) });
    });

    test('a lease call ends with the item that reaches its number of bytes', async () => {
      const { port } = await openFresh(open);
      for (const id of ['a', 'b', 'c', 'd']) await port.put(newItem(id, { body: Buffer.alloc(10) }));
      expect(idsOf(await port.lease(request({ maxBytes: 20 })))).toEqual(['a', 'b']);
      expect(idsOf(await port.lease(request({ maxBytes: 1 })))).toEqual(['c']);
    });

    test('a lease of another queue or namespace is lost', async () => {
      const { port } = await openFresh(open);
      await port.put(newItem('one'));
      await port.put(newItem('two', { queue: 'other' }));
      const [one] = await port.lease(request());
      for (const key of [
        { ...KEY, queue: 'other' },
        { ...KEY, namespaceId: 'evil' },
      ])
        expect(await port.settle(key, [one!.leaseId], ACK, LIMITS)).toMatchObject([{ outcome: 'lost' }]);
    });

    test('items that fail too often become dead, and wait again when they are retried', async () => {
      const { port, clock } = await openFresh(open);
      const limits = { maxAttempts: 2 };
      await port.put(newItem('one'));
      const [first] = await port.lease(request(limits));
      const nack: LeaseChange = { kind: 'nack', delayMs: null, error: 'no stock' };
      expect(await settle(port, [first!.leaseId], nack, 2)).toEqual([
        { outcome: 'waiting', until: clock.now() + nackDelayMs(1) },
      ]);
      expect(await settle(port, [first!.leaseId], ACK, 2)).toMatchObject([{ outcome: 'lost' }]);
      expect([await port.due([KEY]), await port.lease(request(limits))]).toEqual([[], []]);
      clock.advance(nackDelayMs(1));
      expect(await port.due([KEY])).toEqual([KEY]);
      await port.lease(request(limits));
      clock.advance(seconds(30));
      expect(await port.expire(KEY, { ...LIMITS, ...limits })).toBe(1);
      const { items } = await port.list(KEY, { status: 'dead', limit: 10 });
      expect(items).toMatchObject([{ id: 'one', attempt: 2, lastError: EXPIRED, endedAt: clock.now() }]);
      expect(await port.count(KEY)).toMatchObject({ waiting: 0, leased: 0, dead: 1, oldestReceivedAt: null });
      expect(await port.lastDeadAt(KEY)).toBe(clock.now());
      expect(await port.retry(KEY, ['one', 'two'])).toEqual(['one']);
      expect(await port.lease(request(limits))).toMatchObject([{ id: 'one', attempt: 1 }]);
    });

    test('an item counts as handled although its lease expired, unless it was given out again', async () => {
      const { port, clock } = await openFresh(open);
      await port.put(newItem('one'));
      const [late] = await port.lease(request({ leaseMs: 1000 }));
      clock.advance(1000);
      const extend: LeaseChange = { kind: 'extend', leaseMs: 1000 };
      expect(await settle(port, [late!.leaseId], extend)).toMatchObject([{ outcome: 'lost' }]);
      await port.expire(KEY, LIMITS);
      expect(await settle(port, [late!.leaseId], ACK)).toMatchObject([{ outcome: 'acked' }]);
      await port.put(newItem('two'));
      const [lost] = await port.lease(request({ leaseMs: 1000 }));
      clock.advance(1000);
      const [again] = await port.lease(request());
      expect(await settle(port, [lost!.leaseId], ACK)).toMatchObject([{ outcome: 'lost' }]);
      expect(
        await settle(port, [lost!.leaseId, again!.leaseId], { kind: 'extend', leaseMs: 5 }),
      ).toMatchObject([{ outcome: 'lost' }, { outcome: 'extended' }]);
      expect(await settle(port, [again!.leaseId], extend)).toEqual([
        { outcome: 'extended', until: clock.now() + 1000 },
      ]);
    });

    test('lists are pages by status, and deleted items make way for those behind them', async () => {
      const { port, clock } = await openFresh(open);
      for (let i = 0; i < 5; i++) await port.put(newItem(`i${i}`, { orderKey: 'same', receivedAt: 5 + i }));
      await port.put(newItem('later', { delayMs: 1000 }));
      const seen: QueueItemRecord[] = [];
      for (let after: Parameters<QueueStore['list']>[1]['after']; ; ) {
        const page = await port.list(KEY, { status: 'waiting', limit: 2, after });
        seen.push(...page.items);
        if (!page.next) break;
        after = page.next;
      }
      expect(idsOf(seen).sort()).toEqual(['i0', 'i1', 'i2', 'i3', 'i4', 'later']);
      expect(seen.find(({ id }) => id === 'later')).toMatchObject({ availableAt: clock.now() + 1000 });
      expect(await port.counts('acme')).toEqual([
        { ...KEY, waiting: 6, leased: 0, dead: 0, oldestReceivedAt: 1 },
      ]);
      expect(await port.remove(KEY, ['i0', 'nothing'])).toEqual(['i0']);
      expect(idsOf(await port.lease(request()))).toEqual(['i1']);
      expect(await port.remove(KEY, ['i1'])).toEqual([]);
      expect(await port.purge(KEY, 'waiting', 3)).toBe(3);
      expect(await port.purge(KEY, 'waiting', 3)).toBe(1);
      expect((await port.list(KEY, { limit: 10 })).items).toMatchObject([{ id: 'i1', status: 'leased' }]);
    });

    test('retention deletes ended items only', async () => {
      const { port, clock } = await openFresh(open);
      for (const id of ['acked', 'dead', 'waiting']) await port.put(newItem(id));
      const [acked, dead] = await port.lease(request({ max: 2 }));
      await settle(port, [acked!.leaseId], ACK);
      await settle(port, [dead!.leaseId], { kind: 'nack', delayMs: 0, error: null }, 1);
      clock.advance(days(2));
      const prune = (ackedDays: number, deadDays: number) =>
        port.prune({
          ackedBefore: clock.now() - days(ackedDays),
          deadBefore: clock.now() - days(deadDays),
          limit: 10,
        });
      expect([await prune(3, 3), await prune(1, 3), await prune(1, 1)]).toEqual([0, 1, 1]);
      expect(idsOf((await port.list(KEY, { limit: 10 })).items)).toEqual(['waiting']);
    });

    test('settings are kept, replaced and removed', async () => {
      const { port, reopen } = await openFresh(open);
      await port.configure(KEY, '{"maxAttempts":3}');
      await port.configure(KEY, '{"maxAttempts":4}');
      const again = await reopen();
      expect(await again.settings()).toEqual([{ ...KEY, settings: '{"maxAttempts":4}' }]);
      await again.configure(KEY, null);
      expect(await again.settings()).toEqual([]);
    });

    test('concurrent programs never hold the same item, or two items of one order key', async () => {
      const bench = await openFresh(open);
      const { port } = bench;
      const other = await bench.second();
      const count = 300;
      await times(count, (i) =>
        (i % 2 ? port : other).put(newItem(`i${i}`, { orderKey: i % 3 ? `k${i % 7}` : null })),
      );
      const handled: string[] = [];
      const held = new Set<string>();
      await times(8, async (n) => {
        const mine = n % 2 ? port : other;
        while (handled.length < count) {
          const items = await mine.lease(request({ max: 5 }));
          for (const { id, orderKey } of items) {
            for (const name of [id, ...(orderKey ? [orderKey] : [])]) {
              expect(held).not.toContain(name);
              held.add(name);
            }
          }
          // Released before the acknowledgement is sent, because the next holder can be told before this one.
          for (const { id, orderKey } of items) for (const name of [id, orderKey ?? '']) held.delete(name);
          const results = await settle(
            mine,
            items.map(({ leaseId }) => leaseId),
            ACK,
          );
          expect(results.every(({ outcome }) => outcome === 'acked')).toBe(true);
          handled.push(...idsOf(items));
        }
      });
      expect(new Set(handled).size).toBe(count);
      expect(handled.length).toBe(count);
      expect(await port.count(KEY)).toMatchObject({ waiting: 0, leased: 0 });
    });

    test('every order of calls has the results that the rules of leases give', async () => {
      const bench = await openFresh(open);
      let run = 0;
      await fc.assert(
        fc.asyncProperty(limitsOf, fc.array(CALL, { maxLength: 40 }), (limits, calls) =>
          follow(bench, { namespaceId: 'acme', queue: `run${run++}` }, limits, calls),
        ),
        { numRuns: 60 },
      );
    });
  });
}

const id = fc.integer({ min: 0, max: 5 }).map((n) => `i${n}`);
const limitsOf = fc.record({
  maxAttempts: fc.integer({ min: 1, max: 3 }),
  concurrency: fc.constantFrom(null, 1, 2),
});
const CALL = fc.oneof(
  fc.record({
    call: fc.constant('put' as const),
    id,
    orderKey: fc.constantFrom(null, 'a', 'b'),
    delayMs: fc.constantFrom(0, 0, 500),
  }),
  fc.record({
    call: fc.constant('lease' as const),
    max: fc.integer({ min: 1, max: 3 }),
    leaseMs: fc.constantFrom(1000, 3000),
  }),
  fc.record({
    call: fc.constant('settle' as const),
    lease: fc.nat(5),
    change: fc.constantFrom<LeaseChange>(
      { kind: 'ack' },
      { kind: 'nack', delayMs: 0, error: 'a' },
      { kind: 'nack', delayMs: null, error: null },
      { kind: 'extend', leaseMs: 2000 },
    ),
  }),
  fc.record({ call: fc.constant('advance' as const), ms: fc.constantFrom(400, 1000, 2000) }),
  fc.record({ call: fc.constantFrom('expire' as const, 'retry' as const, 'remove' as const), id }),
);
type Call = typeof CALL extends fc.Arbitrary<infer Value> ? Value : never;

/** Makes the calls in the store and in the model, and compares the results and all items. */
async function follow(
  { port, clock }: DriverBench<QueueStore>,
  key: typeof KEY,
  limits: { maxAttempts: number; concurrency: number | null },
  calls: readonly Call[],
): Promise<void> {
  const model = new QueueModel(limits);
  const given: Array<{ leaseId: string; id: string; token: string }> = [];
  for (const call of calls) {
    const now = clock.now();
    switch (call.call) {
      case 'put':
        expect(
          await port.put(newItem(call.id, { ...key, orderKey: call.orderKey, delayMs: call.delayMs })),
        ).toBe(model.put(call.id, call.orderKey, call.delayMs, now));
        break;
      case 'lease': {
        const { max, leaseMs } = call;
        const token = `token${leases++}`;
        const items = await port.lease({ ...key, ...limits, max, maxBytes: 1e6, leaseMs, token });
        const expected = model.lease(max, leaseMs, token, now).map((item) => ({
          ...{ id: item.id, attempt: item.attempt, orderKey: item.orderKey, leasedUntil: item.dueAt },
        }));
        expect(
          items.map(({ id, attempt, orderKey, leasedUntil }) => ({ id, attempt, orderKey, leasedUntil })),
        ).toEqual(expected);
        given.push(...items.map(({ leaseId, id }) => ({ leaseId, id, token })));
        break;
      }
      case 'settle': {
        const lease = given.at(-1 - call.lease);
        if (!lease) break;
        const [result] = await port.settle(key, [lease.leaseId], call.change, limits);
        expect(result).toEqual(model.settle(lease.id, lease.token, call.change, now));
        break;
      }
      case 'advance':
        clock.advance(call.ms);
        break;
      case 'expire':
        expect(await port.expire(key, limits)).toBe(model.expire(now));
        break;
      case 'retry':
        expect(await port.retry(key, [call.id])).toEqual(model.retry(call.id, now) ? [call.id] : []);
        break;
      case 'remove':
        expect(await port.remove(key, [call.id])).toEqual(model.remove(call.id, now) ? [call.id] : []);
        break;
    }
    const { items } = await port.list(key, { limit: 100 });
    const shown = items.map(({ id, status, attempt, lastError, availableAt, leasedUntil, endedAt }) => ({
      ...{ id, status, attempt, lastError, dueAt: availableAt ?? leasedUntil ?? endedAt ?? 0 },
    }));
    const expected = model.items.map(({ id, state, attempt, lastError, dueAt }) => ({
      ...{ id, status: statusOf(state), attempt, lastError, dueAt: state === 2 ? 0 : dueAt },
    }));
    const byId = (a: { id: string }, b: { id: string }): number => (a.id < b.id ? -1 : 1);
    expect(shown.sort(byId)).toEqual(expected.sort(byId));
  }
}
