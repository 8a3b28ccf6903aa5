import { describe, expect, test } from 'vitest';
import { days } from '../../../src/kit/time/duration.ts';
import type {
  EndedAttempt,
  GatewayStore,
  NewStoredMessage,
  StoredEndpoint,
} from '../../../src/store/ports/index.ts';
import { type OpenDriver, openFresh, times } from './driver.ts';

const idOf = (kind: 'ep' | 'msg', number: number): string => `${kind}_${String(number).padStart(26, '0')}`;

function endpoint(number: number, more: Partial<StoredEndpoint> = {}): StoredEndpoint {
  return {
    ...{ id: idOf('ep', number), namespaceId: 'acme', application: null, url: 'https://example.com/hook' },
    ...{
      types: ['order.*', 'x'],
      description: null,
      rateLimitPerSecond: 2.5,
      headers: 'sealed',
      secret: 's1',
    },
    ...{ previousSecret: null, previousSecretExpiresAt: null, ordered: true, retrySchedule: [1, 2] },
    publicOnly: true,
    ...{
      timeoutMs: 1000,
      disabledReason: null,
      disabledAt: null,
      failingSince: null,
      createdAt: 1,
      updatedAt: 1,
    },
    ...more,
  };
}

function message(number: number, more: Partial<NewStoredMessage> = {}): NewStoredMessage {
  return {
    ...{ id: idOf('msg', number), namespaceId: 'acme', application: null, type: 'order.created' },
    ...{ timestamp: 5, createdAt: 1000, body: Buffer.from(`{"n":${number},"\\u0000":0}\0`), traceId: 't' },
    ...{ endpointIds: [idOf('ep', 1)], key: null },
    ...more,
  };
}

function ended(number: number, more: Partial<EndedAttempt> = {}): EndedAttempt {
  return {
    ...{ messageId: idOf('msg', number), endpointId: idOf('ep', 1), number: 1, trigger: 'first' as const },
    ...{
      startedAt: number,
      durationMs: 1.5,
      succeeded: true,
      responseStatus: 200,
      excerpt: null,
      error: null,
    },
    ...{ nextAttemptAt: null, status: 'succeeded' as const, tries: 1, endedAt: 10 },
    ...more,
  };
}

const failed = { succeeded: false, responseStatus: 500, excerpt: 'no', error: 'HTTP 500' };
const retrying = (at: number) => ({
  ...failed,
  status: 'retrying' as const,
  nextAttemptAt: at,
  endedAt: null,
});
const dead = { ...failed, status: 'dead' as const };
const ids = (items: ReadonlyArray<{ id: string }>): number[] => items.map(({ id }) => Number(id.slice(4)));
const messageIds = (items: ReadonlyArray<{ messageId: string }>): number[] =>
  items.map(({ messageId }) => Number(messageId.slice(4)));

/** @spec docs/messages.md */
export function describeMessages(name: string, open: OpenDriver<GatewayStore>): void {
  describe(`endpoints: ${name}`, { timeout: 60_000 }, () => {
    test('an endpoint is stored, listed, changed and removed within its namespace', async () => {
      const { port, reopen } = await openFresh(open);
      const one = endpoint(1);
      expect(await port.endpoints.add(one, 10)).toBe(true);
      expect(
        await port.endpoints.add(endpoint(2, { application: 'shop', disabledReason: 'operator' }), 10),
      ).toBe(true);
      expect(await port.endpoints.add(endpoint(3, { namespaceId: 'other' }), 10)).toBe(true);
      expect(await port.endpoints.add(endpoint(4), 2)).toBe(false);
      const { endpoints } = await reopen();
      expect(await endpoints.find('acme', one.id)).toEqual(one);
      expect(await endpoints.find('other', one.id)).toBeUndefined();
      const list = (more: object) => endpoints.list({ namespaceId: 'acme', limit: 10, ...more });
      expect((await list({})).map(({ id }) => id)).toEqual([idOf('ep', 2), one.id]);
      expect((await list({ before: idOf('ep', 2) })).length).toBe(1);
      expect((await list({ application: 'shop' })).length).toBe(1);
      expect((await list({ disabled: false })).map(({ id }) => id)).toEqual([one.id]);
      expect(await endpoints.update('other', one.id, { url: 'x' })).toBeUndefined();
      const changed = await endpoints.update('acme', one.id, {
        url: 'https://b.example',
        retrySchedule: null,
      });
      expect(changed).toEqual({ ...one, url: 'https://b.example', retrySchedule: null });
      expect(
        await endpoints.rotate('acme', one.id, { secret: 's2', previousExpiresAt: 99, now: 50 }),
      ).toMatchObject({
        ...{ secret: 's2', previousSecret: 's1', previousSecretExpiresAt: 99, updatedAt: 50 },
      });
      expect(await endpoints.remove('other', one.id)).toBe(false);
      expect(await endpoints.remove('acme', one.id)).toBe(true);
      expect(await endpoints.read([one.id, idOf('ep', 2)])).toHaveLength(1);
      expect(await endpoints.all()).toHaveLength(2);
    });

    test('racing creates do not exceed the limit of a namespace', async () => {
      const { port, second } = await openFresh(open);
      const other = await second();
      const added = await times(20, (index) =>
        (index % 2 ? port : other).endpoints.add(endpoint(index + 1), 5),
      );
      expect(added.filter((isAdded) => isAdded)).toHaveLength(5);
      expect(await port.endpoints.all()).toHaveLength(5);
    });

    test('an endpoint is disabled once, and changes are added to the feed', async () => {
      const { port } = await openFresh(open);
      await port.endpoints.add(endpoint(1), 10);
      const cursor = await port.feed.begin();
      expect(await port.endpoints.disable(idOf('ep', 1), 'gone', 70)).toBe(true);
      expect(await port.endpoints.disable(idOf('ep', 1), 'failures', 80)).toBe(false);
      const { changes } = await port.feed.read(cursor, 10);
      expect(changes).toEqual([{ topic: 'endpoints', key: idOf('ep', 1) }]);
      expect(await port.endpoints.find('acme', idOf('ep', 1))).toMatchObject({
        ...{ disabledReason: 'gone', disabledAt: 70 },
      });
    });
  });

  describe(`messages: ${name}`, { timeout: 60_000 }, () => {
    test('a message is stored with its deliveries and its bytes', async () => {
      const { port, reopen } = await openFresh(open);
      const endpointIds = [idOf('ep', 1), idOf('ep', 2)];
      const result = await port.messages.publish(message(1, { endpointIds }));
      expect(result).toEqual({ outcome: 'stored', id: idOf('msg', 1), timestamp: 5, endpoints: 2 });
      const { messages } = await reopen();
      const found = await messages.find('acme', idOf('msg', 1));
      expect(Buffer.from(found!.body)).toEqual(message(1).body);
      expect(found).toMatchObject({
        type: 'order.created',
        traceId: 't',
        counts: { waiting: 2, succeeded: 0 },
      });
      expect(found!.deliveries.map(({ endpointId }) => endpointId)).toEqual(endpointIds);
      expect(await messages.find('other', idOf('msg', 1))).toBeUndefined();
      expect(await messages.waiting(idOf('ep', 1), 5)).toMatchObject([
        { messageId: idOf('msg', 1), attempts: 0, tries: 0, isReplay: false },
      ]);
      expect(await messages.contents([idOf('msg', 1), idOf('msg', 2)], 1000)).toMatchObject([
        { id: idOf('msg', 1) },
      ]);
    });

    test('contents are read in the given order up to a number of bytes, and at least one', async () => {
      const { messages } = (await openFresh(open)).port;
      for (const number of [1, 2, 3]) await messages.publish(message(number, { body: Buffer.alloc(10) }));
      const idsWithin = async (maxBytes: number) => {
        const ids = [3, 4, 1, 2].map((number) => idOf('msg', number));
        return (await messages.contents(ids, maxBytes)).map(({ id }) => id).toSorted();
      };
      expect(await idsWithin(1)).toEqual([idOf('msg', 3)]);
      expect(await idsWithin(29)).toEqual([idOf('msg', 1), idOf('msg', 3)]);
      expect(await idsWithin(30)).toHaveLength(3);
    });

    test('of racing publishes with one key, one is stored; other content is a conflict', async () => {
      const { port, second } = await openFresh(open);
      const other = await second();
      const keyed = (number: number, content: string, createdAt = 1000) =>
        message(number, {
          createdAt,
          key: { digest: Buffer.from('key'), content: Buffer.from(content), expiresAt: createdAt + days(7) },
        });
      const results = await times(20, (index) =>
        (index % 2 ? port : other).messages.publish(keyed(index + 1, 'same')),
      );
      const stored = results.filter(({ outcome }) => outcome === 'stored');
      expect(stored).toHaveLength(1);
      expect(results.every(({ id, endpoints }) => id === stored[0]!.id && endpoints === 1)).toBe(true);
      expect(await port.messages.publish(keyed(30, 'different'))).toMatchObject({ outcome: 'conflict' });
      expect((await port.messages.list({ namespaceId: 'acme', limit: 100 })).items).toHaveLength(1);
      const late = await port.messages.publish(keyed(40, 'different', 1000 + days(7)));
      expect(late).toMatchObject({ outcome: 'stored', id: idOf('msg', 40) });
      expect(await port.messages.pruneKeys(1000 + days(7), 10)).toBe(0);
      expect(await port.messages.pruneKeys(1000 + days(14), 10)).toBe(1);
    });

    test('an attempt that failed is due at its time, and one that ended is recorded', async () => {
      const { port } = await openFresh(open);
      await port.endpoints.add(endpoint(1), 10);
      for (const number of [1, 2, 3]) await port.messages.publish(message(number));
      await port.messages.endAttempts(
        [ended(1), ended(2, retrying(500)), ended(3, dead)],
        [{ endpointId: idOf('ep', 1), failingSince: 7 }],
      );
      const { messages } = port;
      expect(await messages.work()).toEqual([
        { endpointId: idOf('ep', 1), oldestWaiting: null, nextRetryAt: 500 },
      ]);
      expect(await messages.countUnfinished(10)).toBe(1);
      expect(await messages.retries(idOf('ep', 1), 499, 5)).toEqual([]);
      expect(await messages.retries(idOf('ep', 1), 500, 5)).toMatchObject([
        { messageId: idOf('msg', 2), attempts: 1, tries: 1, nextAttemptAt: 500 },
      ]);
      expect(await messages.nextRetryAt(idOf('ep', 1), 499)).toBe(500);
      expect(await messages.nextRetryAt(idOf('ep', 1), 500)).toBeNull();
      expect((await port.endpoints.find('acme', idOf('ep', 1)))?.failingSince).toBe(7);
      expect((await messages.find('acme', idOf('msg', 3)))?.deliveries).toMatchObject([
        { status: 'dead', lastError: 'HTTP 500' },
      ]);
      // An end that arrives late does not change a finished delivery.
      await messages.endAttempts([ended(3, { number: 2 })], []);
      expect((await messages.find('acme', idOf('msg', 3)))?.counts).toMatchObject({ dead: 1 });
    });

    test('a delivery can end without a request, and then has no further attempt', async () => {
      const { messages } = (await openFresh(open)).port;
      for (const number of [1, 2]) await messages.publish(message(number));
      await messages.endAttempts([ended(1, retrying(500))], []);
      const unsent = { endpointId: idOf('ep', 1), status: 'cancelled' as const, error: 'moved', endedAt: 10 };
      await messages.endAttempts(
        [1, 2].map((number) => ({ ...unsent, messageId: idOf('msg', number) })),
        [],
      );
      const found = await Promise.all([1, 2].map((number) => messages.find('acme', idOf('msg', number))));
      const state = { status: 'cancelled', lastError: 'moved', nextAttemptAt: null, endedAt: 10 };
      expect(found.flatMap((each) => each!.deliveries)).toMatchObject([
        { ...state, attempts: 1, lastStatus: 500 },
        { ...state, attempts: 0, lastStatus: null },
      ]);
      const attempts = await messages.attempts({
        ...{ namespaceId: 'acme', endpointId: idOf('ep', 1), limit: 5 },
      });
      expect(attempts).toMatchObject([{ messageId: idOf('msg', 1), nextAttemptAt: 500 }]);
    });

    test('lists filter by type, application, endpoint and status, and page', async () => {
      const { port } = await openFresh(open);
      const { messages } = port;
      const [one, two] = [idOf('ep', 1), idOf('ep', 2)];
      for (let n = 1; n <= 6; n++)
        await messages.publish(
          message(n, {
            type: n % 2 ? 'a' : 'b',
            application: n > 4 ? 'shop' : null,
            endpointIds: n === 6 ? [one, two] : [one],
          }),
        );
      await messages.publish(message(7, { namespaceId: 'other' }));
      await messages.endAttempts(
        [ended(1), ended(2, dead), ended(3, retrying(9)), ended(6, { endpointId: two })],
        [],
      );
      const list = async (more: object) =>
        ids((await messages.list({ namespaceId: 'acme', limit: 10, ...more })).items);
      expect(await list({})).toEqual([6, 5, 4, 3, 2, 1]);
      expect(await list({ type: 'a' })).toEqual([5, 3, 1]);
      expect(await list({ application: 'shop' })).toEqual([6, 5]);
      expect(await list({ endpointId: two })).toEqual([6]);
      expect(await list({ status: 'dead' })).toEqual([2]);
      expect(await list({ status: 'retrying', endpointId: one })).toEqual([3]);
      expect(await list({ status: 'waiting' })).toEqual([6, 5, 4]);
      expect(await list({ status: 'succeeded' })).toEqual([6, 1]);
      expect(await list({ status: 'succeeded', endpointId: one })).toEqual([1]);
      expect(await list({ from: idOf('msg', 3), before: idOf('msg', 5) })).toEqual([4, 3]);
      const page = await messages.list({ namespaceId: 'acme', limit: 4 });
      expect([ids(page.items), page.next]).toEqual([[6, 5, 4, 3], idOf('msg', 3)]);
      expect((await messages.list({ namespaceId: 'acme', limit: 4, before: page.next! })).next).toBeNull();
      expect(page.items[0]!.counts).toEqual({ waiting: 1, retrying: 0, succeeded: 1, dead: 0, cancelled: 0 });
    });

    test('messages of a trace are found, also with other conditions', async () => {
      const { port } = await openFresh(open);
      const { messages } = port;
      const [one, two] = [idOf('ep', 1), idOf('ep', 2)];
      for (let n = 1; n <= 4; n++)
        await messages.publish(
          message(n, { traceId: n === 4 ? 'u' : 't', type: n === 1 ? 'a' : 'b', endpointIds: [one, two] }),
        );
      await messages.publish(message(5, { namespaceId: 'other' }));
      await messages.endAttempts([ended(1, dead), ended(2), ended(3, { ...dead, endpointId: two })], []);
      const list = async (more: object) =>
        ids((await messages.list({ namespaceId: 'acme', traceId: 't', limit: 10, ...more })).items);
      expect(await list({})).toEqual([3, 2, 1]);
      expect(await list({ traceId: 'absent' })).toEqual([]);
      expect(await list({ type: 'b' })).toEqual([3, 2]);
      expect(await list({ status: 'dead' })).toEqual([3, 1]);
      expect(await list({ status: 'dead', endpointId: one })).toEqual([1]);
      expect(await list({ endpointId: idOf('ep', 3) })).toEqual([]);
      const { items, next } = await messages.list({ namespaceId: 'acme', traceId: 't', limit: 2 });
      expect(ids(items)).toEqual([3, 2]);
      expect(await list({ before: next })).toEqual([1]);
    });

    test('the newest attempts of endpoints are counted, and the failed ones among them', async () => {
      const { port } = await openFresh(open);
      const { messages } = port;
      const [one, two] = [idOf('ep', 1), idOf('ep', 2)];
      for (let n = 1; n <= 6; n++) await messages.publish(message(n, { endpointIds: [one, two] }));
      // The oldest three failed. Those from the third on have one time.
      await messages.endAttempts(
        Array.from({ length: 6 }, (_, i) =>
          ended(i + 1, { ...(i < 3 ? dead : {}), startedAt: Math.min(i, 2) }),
        ),
        [],
      );
      await messages.endAttempts([ended(1, { ...retrying(5), endpointId: two })], []);
      const count = async (max: number) =>
        new Map(
          (await messages.recentAttempts([one, two, idOf('ep', 3)], max)).map((each) => [
            each.endpointId,
            [each.attempts, each.failed],
          ]),
        );
      expect([...(await count(100))].toSorted()).toEqual([
        [one, [6, 3]],
        [two, [1, 1]],
        [idOf('ep', 3), [0, 0]],
      ]);
      expect((await count(4)).get(one)).toEqual([4, 1]);
      expect((await count(3)).get(one)).toEqual([3, 0]);
    });

    test('attempts are listed newest first, by message and by endpoint', async () => {
      const { port } = await openFresh(open);
      const { messages } = port;
      for (const n of [1, 2]) await messages.publish(message(n));
      await messages.endAttempts([ended(1, { ...retrying(5), startedAt: 1 })], []);
      await messages.endAttempts([ended(1, { number: 2, trigger: 'retry', startedAt: 3 }), ended(2)], []);
      const list = (more: object) => messages.attempts({ namespaceId: 'acme', limit: 10, ...more });
      const all = await list({ endpointId: idOf('ep', 1) });
      expect(all.map(({ startedAt }) => startedAt)).toEqual([3, 2, 1]);
      expect(all[2]).toMatchObject({
        type: 'order.created',
        excerpt: 'no',
        succeeded: false,
        nextAttemptAt: 5,
      });
      expect(await list({ endpointId: idOf('ep', 1), after: all[0] })).toHaveLength(2);
      expect(await list({ endpointId: idOf('ep', 1), succeeded: false })).toHaveLength(1);
      expect(await list({ messageId: idOf('msg', 1) })).toHaveLength(2);
      expect(await list({ messageId: idOf('msg', 1), endpointId: idOf('ep', 2) })).toEqual([]);
      expect(await list({ namespaceId: 'other', endpointId: idOf('ep', 1) })).toEqual([]);
    });

    test('a finished delivery is replayed once, and an absent one is added on request', async () => {
      const { port } = await openFresh(open);
      const { messages } = port;
      for (const n of [1, 2, 3]) await messages.publish(message(n));
      await messages.endAttempts([ended(1), ended(2, dead)], []);
      const select = (statuses: Array<'dead' | 'succeeded'>, more: object = {}) =>
        messages.replayable({
          ...{ namespaceId: 'acme', statuses, after: '', before: '~', endedUntil: 10, limit: 10 },
          ...more,
        });
      expect(messageIds((await select(['dead'])).items)).toEqual([2]);
      expect(messageIds((await select(['dead', 'succeeded'])).items)).toEqual([1, 2]);
      expect(messageIds((await select(['dead', 'succeeded'], { endpointId: idOf('ep', 1) })).items)).toEqual([
        1, 2,
      ]);
      expect((await select(['dead'], { endedUntil: 9 })).items).toEqual([]);
      expect((await select(['dead'], { type: 'none' })).items).toEqual([]);
      expect((await select(['dead', 'succeeded'], { limit: 1 })).next).toBe(idOf('msg', 1));
      const delivery = (n: number, ep = 1) => ({ messageId: idOf('msg', n), endpointId: idOf('ep', ep) });
      const options = { endedUntil: 10, add: false };
      const chosen = [delivery(1), delivery(2), delivery(3), delivery(1, 2)];
      expect(await messages.replay('other', chosen, { ...options, add: true })).toEqual([]);
      const again = await messages.replay('acme', chosen, options);
      expect(messageIds(again).sort()).toEqual([1, 2]);
      expect(again[0]).toMatchObject({ tries: 0, attempts: 1, isReplay: true });
      expect(await messages.replay('acme', chosen, options)).toEqual([]);
      expect(await messages.replay('acme', [delivery(1, 2)], { ...options, add: true })).toHaveLength(1);
      expect(messageIds(await messages.waiting(idOf('ep', 1), 10))).toEqual([1, 2, 3]);
    });

    test('unfinished deliveries of an endpoint are ended in parts', async () => {
      const { port } = await openFresh(open);
      const { messages } = port;
      for (const n of [1, 2, 3]) await messages.publish(message(n));
      await messages.endAttempts([ended(1, retrying(5))], []);
      const end = { status: 'cancelled' as const, error: 'deleted', at: 20, limit: 2 };
      expect(await messages.endUnfinished(idOf('ep', 1), end)).toBe(2);
      expect(await messages.endUnfinished(idOf('ep', 1), end)).toBe(1);
      expect(await messages.work()).toEqual([]);
      expect((await messages.find('acme', idOf('msg', 1)))?.deliveries).toMatchObject([
        { status: 'cancelled', lastError: 'deleted', nextAttemptAt: null, endedAt: 20 },
      ]);
    });

    test('a test message is stored with its attempt', async () => {
      const { port } = await openFresh(open);
      await port.messages.addTest(message(1), ended(1, { trigger: 'test' }));
      expect((await port.messages.find('acme', idOf('msg', 1)))?.counts).toMatchObject({ succeeded: 1 });
      expect(await port.messages.work()).toEqual([]);
    });

    test('pruning deletes old messages with their attempts, but none with an unfinished delivery', async () => {
      const { port } = await openFresh(open);
      const { messages } = port;
      for (const n of [1, 2, 3, 4]) await messages.publish(message(n));
      await messages.endAttempts([ended(1), ended(3, dead), ended(4)], []);
      const before = idOf('msg', 4);
      expect(await messages.prune(before, '', 2)).toEqual({ pruned: 1, next: idOf('msg', 2) });
      expect(await messages.prune(before, idOf('msg', 2), 2)).toEqual({ pruned: 1, next: null });
      expect(ids((await messages.list({ namespaceId: 'acme', limit: 9 })).items)).toEqual([4, 2]);
      expect(
        await messages.attempts({ namespaceId: 'acme', endpointId: idOf('ep', 1), limit: 9 }),
      ).toHaveLength(1);
    });
  });
}
