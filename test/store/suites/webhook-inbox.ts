import { describe, expect, test } from 'vitest';
import { systemRandom } from '../../../src/kit/security/random.ts';
import { days, minutes } from '../../../src/kit/time/duration.ts';
import type { DeliveryEnd, NewDelivery, WebhookInbox } from '../../../src/store/ports/index.ts';
import { type OpenDriver, openFresh, times } from './driver.ts';

const SUCCEEDED: DeliveryEnd = {
  status: 'succeeded',
  httpStatus: 200,
  steps: '["auth"]',
  outcome: '{"exitCode":0}',
  durationMs: 12.5,
};
const REFUSED: DeliveryEnd = {
  status: 'refused',
  httpStatus: 401,
  steps: '["auth"]',
  outcome: null,
  durationMs: 0.4,
};

/**
 * What every driver of WebhookInbox does; with `shared`, also among several that are open at once. `emptyBytes` returns
 * the part of an empty store that counts towards `maxBytes`. @spec Webhook delivery
 */
export function describeWebhookInbox(
  name: string,
  open: OpenDriver<WebhookInbox>,
  { shared, emptyBytes = async () => 0 }: { shared: boolean; emptyBytes?: () => Promise<number> },
): void {
  describe(`webhook inbox: ${name}`, () => {
    async function openInbox() {
      const bench = await openFresh(open);
      const random = systemRandom(() => bench.clock.now());
      const delivery = (more: Partial<NewDelivery> = {}): NewDelivery => {
        // Ids of one millisecond have no order among themselves.
        bench.clock.advance(1);
        const { body = new Uint8Array([0, 1, 255]) } = more;
        return {
          webhookId: random.uuid(),
          namespaceId: 'acme',
          pluginId: 'github',
          event: 'push',
          instanceId: '',
          receivedAt: bench.clock.now(),
          source: '127.0.0.1',
          requestId: 'r1',
          traceId: 't1',
          headers: '{"a":"b"}',
          body,
          bodyBytes: body?.byteLength ?? 0,
          mode: 'sync',
          origin: 'sender',
          replayOf: null,
          orderKey: null,
          ...more,
        };
      };
      const lease = () => bench.clock.now() + minutes(1);
      return { ...bench, delivery, lease };
    }
    const asStored = (delivery: NewDelivery) => ({
      ...delivery,
      body: delivery.body && Buffer.from(delivery.body),
      position: expect.any(Number),
      nextAttemptAt: null,
      replayedBy: null,
      marker: null,
    });
    const anyMarker = { marker: expect.any(Buffer) };

    test('begin writes the delivery as running and its marker as pending', async () => {
      const { port, clock, delivery, lease, reopen } = await openInbox();
      const first = delivery();
      expect(await port.begin(first, { key: 'k', expiresAt: lease() })).toBe('begun');
      const inbox = await reopen();
      expect(await inbox.seen('k', clock.now())).toBe('pending');
      expect(await inbox.find(first.webhookId)).toEqual({
        ...asStored(first),
        ...anyMarker,
        status: 'running',
        httpStatus: null,
        steps: '',
        outcome: null,
        durationMs: null,
        attempts: 0,
      });
    });

    test('accept writes the delivery as accepted and its marker as done', async () => {
      const { port, clock, delivery, reopen } = await openInbox();
      const first = delivery({ mode: 'async', body: null });
      expect(await port.accept(first, { key: 'k', expiresAt: clock.now() + days(7) }, '["auth"]')).toBe(
        'begun',
      );
      const inbox = await reopen();
      expect(await inbox.seen('k', clock.now())).toBe('done');
      expect(await inbox.find(first.webhookId)).toMatchObject({
        status: 'accepted',
        steps: '["auth"]',
        body: null,
        mode: 'async',
      });
    });

    test('a delivery whose marker is already claimed gets its state and writes nothing', async () => {
      const { port, clock, delivery, lease } = await openInbox();
      await port.begin(delivery(), { key: 'p', expiresAt: lease() });
      await port.accept(delivery(), { key: 'd', expiresAt: clock.now() + days(7) }, '[]');
      const late = delivery();
      expect(await port.begin(late, { key: 'p', expiresAt: lease() })).toBe('pending');
      expect(await port.accept(late, { key: 'p', expiresAt: lease() }, '[]')).toBe('pending');
      expect(await port.begin(late, { key: 'd', expiresAt: lease() })).toBe('done');
      expect(await port.find(late.webhookId)).toBeUndefined();
    });

    test('of a hundred concurrent deliveries with one id, only one begins and is written', async () => {
      const { port, delivery, lease, second } = await openInbox();
      const other = shared ? await second() : port;
      const deliveries = Array.from({ length: 100 }, () => delivery());
      const results = await times(100, (i) =>
        (i % 2 ? port : other).begin(deliveries[i]!, { key: 'k', expiresAt: lease() }),
      );
      expect(results.filter((result) => result === 'begun')).toHaveLength(1);
      expect(results.filter((result) => result === 'pending')).toHaveLength(99);
      const written = (await port.list('acme', { limit: 200 })).items;
      expect(written.map(({ webhookId }) => webhookId)).toEqual([
        deliveries[results.indexOf('begun')]!.webhookId,
      ]);
    });

    test('without a marker, every delivery begins', async () => {
      const { port, delivery } = await openInbox();
      expect(await times(3, () => port.begin(delivery(), undefined))).toEqual(['begun', 'begun', 'begun']);
      expect((await port.list('acme', { limit: 9 })).items).toHaveLength(3);
    });

    test('a pending marker expires with its lease, a done one with the idempotency window', async () => {
      const { port, clock, delivery } = await openInbox();
      const [first, second, third] = [delivery(), delivery(), delivery()];
      await port.begin(first, { key: 'k', expiresAt: clock.now() + 1000 });
      clock.advance(999);
      expect(await port.seen('k', clock.now())).toBe('pending');
      expect(await port.begin(second, { key: 'k', expiresAt: clock.now() + 1000 })).toBe('pending');
      clock.advance(1);
      expect(await port.seen('k', clock.now())).toBeUndefined();
      expect(await port.accept(second, { key: 'k', expiresAt: clock.now() + days(7) }, '[]')).toBe('begun');
      clock.advance(days(7) - 1);
      expect(await port.seen('k', clock.now())).toBe('done');
      clock.advance(1);
      expect(await port.seen('k', clock.now())).toBeUndefined();
      expect(await port.begin(third, { key: 'k', expiresAt: clock.now() + 1000 })).toBe('begun');
    });

    test('success keeps the marker for the idempotency window, and failure releases it for a redelivery', async () => {
      const { port, clock, delivery, lease } = await openInbox();
      const [good, bad] = [delivery(), delivery()];
      await port.begin(good, { key: 'good', expiresAt: lease() });
      await port.begin(bad, { key: 'bad', expiresAt: lease() });
      await port.finish(good.webhookId, SUCCEEDED, { key: 'good', expiresAt: clock.now() + days(7) });
      await port.finish(
        bad.webhookId,
        { ...SUCCEEDED, status: 'failed', httpStatus: 500 },
        { key: 'bad', expiresAt: null },
      );
      clock.advance(minutes(5));
      expect(await port.seen('good', clock.now())).toBe('done');
      expect(await port.begin(delivery(), { key: 'bad', expiresAt: lease() })).toBe('begun');
      expect(await port.find(good.webhookId)).toEqual({
        ...asStored(good),
        ...anyMarker,
        ...SUCCEEDED,
        attempts: 1,
      });
      expect(await port.find(bad.webhookId)).toMatchObject({
        status: 'failed',
        httpStatus: 500,
        attempts: 1,
      });
    });

    test('a failure after the end of its lease does not release the marker of another delivery', async () => {
      const { port, clock, delivery, lease } = await openInbox();
      const slow = delivery();
      await port.begin(slow, { key: 'k', expiresAt: lease() });
      clock.advance(minutes(2));
      await port.begin(delivery(), { key: 'k', expiresAt: lease() });
      await port.finish(slow.webhookId, { ...SUCCEEDED, status: 'failed' }, { key: 'k', expiresAt: null });
      expect(await port.seen('k', clock.now())).toBe('pending');
    });

    test('unfinished deliveries are returned oldest first in pages until they are finished', async () => {
      const { port, delivery } = await openInbox();
      const accepted = Array.from({ length: 5 }, () => delivery({ mode: 'async' }));
      await times(5, (i) => port.accept(accepted[i]!, undefined, '[]'));
      await port.begin(delivery(), undefined);
      await port.finish(accepted[1]!.webhookId, SUCCEEDED);
      const ids = [0, 2, 3, 4].map((i) => accepted[i]!.webhookId);
      const page = await port.unfinished(2);
      expect(page.map(({ webhookId }) => webhookId)).toEqual(ids.slice(0, 2));
      expect(page[0]).toMatchObject(asStored(accepted[0]!));
      expect((await port.unfinished(9, page[1]!.position)).map(({ webhookId }) => webhookId)).toEqual(
        ids.slice(2),
      );
    });

    test('deliveries of a namespace are listed newest first, in pages and without bodies', async () => {
      const { port, delivery } = await openInbox();
      const mine = Array.from({ length: 5 }, () => delivery());
      await times(5, (i) => port.begin(mine[i]!, undefined));
      await port.begin(delivery({ namespaceId: 'other' }), undefined);
      const newest = mine.map(({ webhookId }) => webhookId).reverse();
      const page = await port.list('acme', { limit: 3 });
      expect(page.items.map(({ webhookId }) => webhookId)).toEqual(newest.slice(0, 3));
      expect(page.items.every(({ body }) => body === null)).toBe(true);
      const rest = await port.list('acme', { limit: 3, before: page.next! });
      expect(rest.items.map(({ webhookId }) => webhookId)).toEqual(newest.slice(3));
      expect(rest.next).toBeNull();
    });

    test('the deliveries of a trace are found newest first, in one namespace and without bodies', async () => {
      const { port, delivery } = await openInbox();
      const ofTrace = Array.from({ length: 3 }, () => delivery({ traceId: 'trace-a' }));
      const others = [
        delivery({ traceId: 'trace-b' }),
        delivery({ traceId: 'trace-a', namespaceId: 'other' }),
      ];
      for (const each of [...ofTrace, ...others]) await port.begin(each, undefined);
      const newest = ofTrace.map(({ webhookId }) => webhookId).reverse();
      const found = await port.ofTrace('acme', 'trace-a', 9);
      expect(found.map(({ webhookId }) => webhookId)).toEqual(newest);
      expect(found.every(({ body }) => body === null)).toBe(true);
      const latest = await port.ofTrace('acme', 'trace-a', 1);
      expect(latest.map(({ webhookId }) => webhookId)).toEqual(newest.slice(0, 1));
      expect(await port.ofTrace('acme', 'trace-c', 9)).toEqual([]);
      expect(await port.ofTrace('acme', 'trace\0b', 9)).toEqual([]);
    });

    test('lists can be filtered by status, plugin, event, time and text together', async () => {
      const { port, clock, delivery } = await openInbox();
      const body = (text: string) => ({ body: new TextEncoder().encode(text) });
      const made = [
        delivery({ ...body('{"order":"a-1"}'), event: 'push' }),
        delivery({ ...body('{"order":"a-2"}'), event: 'push' }),
        delivery({ ...body('{"order":"a-1"}'), event: 'issues' }),
        delivery({ ...body('{"order":"100%"}'), pluginId: 'stripe', event: 'push' }),
      ];
      await times(4, (i) => port.accept(made[i]!, undefined, ''));
      await port.finish(made[0]!.webhookId, {
        ...SUCCEEDED,
        status: 'failed',
        outcome: '{"why":"sold out"}',
      });
      const found = async (filter: object) =>
        (await port.list('acme', { limit: 9, ...filter })).items.map(({ webhookId }) =>
          made.findIndex((each) => each.webhookId === webhookId),
        );
      expect(await found({ status: ['failed', 'dead'] })).toEqual([0]);
      expect(await found({ event: 'push' })).toEqual([3, 1, 0]);
      expect(await found({ pluginId: 'github', event: 'push' })).toEqual([1, 0]);
      expect(await found({ search: 'a-1' })).toEqual([2, 0]);
      expect(await found({ search: 'sold out' })).toEqual([0]);
      expect(await found({ search: '0%' })).toEqual([3]);
      expect(await found({ search: '%' })).toEqual([3]);
      expect(await found({ search: 'a-1', event: 'issues' })).toEqual([2]);
      expect(await found({ since: made[2]!.receivedAt })).toEqual([3, 2]);
      expect(await found({ since: clock.now() + 1 })).toEqual([]);
    });

    test('a text is found in the names and values of headers, and not in masked, sealed or malformed ones', async () => {
      const { port, delivery } = await openInbox();
      const headers = (...pairs: Array<[string, string]>) => ({ headers: JSON.stringify(pairs) });
      const made = [
        delivery(headers(['x-github-event', 'push'], ['x-trace', 'a"b\\c'])),
        delivery(headers(['x-github-event', 'issues'], ['authorization', '[masked]'])),
        delivery(headers([':path', '/hooks?x=push'], [':sealed', 'push'], ['x-odd', 'say: push: now'])),
        delivery({ headers: 'push' }),
        delivery({ headers: '{"a":"push"}' }),
        delivery({ headers: '[["x-nul","push\\u0000"]]', namespaceId: 'other' }),
      ];
      await times(made.length, (i) => port.accept(made[i]!, undefined, ''));
      const found = async (search: string) =>
        (await port.list('acme', { limit: 9, search })).items.map(({ webhookId }) =>
          made.findIndex((each) => each.webhookId === webhookId),
        );
      expect(await found('x-github-event')).toEqual([1, 0]);
      expect(await found('github-event: pu')).toEqual([0]);
      expect(await found('push')).toEqual([2, 0]);
      expect(await found('say: push:')).toEqual([2]);
      expect(await found('a"b\\c')).toEqual([0]);
      expect(await found('authorization')).toEqual([1]);
      expect(await found('masked')).toEqual([]);
      expect(await found('/hooks')).toEqual([]);
      expect(await found('","')).toEqual([]);
      expect(await found(': ')).toEqual([2, 1, 0]);
      expect((await port.list('other', { limit: 9, search: 'xyz' })).items).toEqual([]);
    });

    test('a stream reads deliveries after a position, and finds out which open ones have ended', async () => {
      const { port, delivery } = await openInbox();
      expect(await port.latest()).toBe(0);
      const made = Array.from({ length: 4 }, () => delivery());
      await times(4, (i) => port.begin(made[i]!, undefined));
      await port.begin(delivery({ namespaceId: 'other' }), undefined);
      const first = await port.after('acme', 0, 2);
      expect(first.map(({ webhookId }) => webhookId)).toEqual([made[0]!.webhookId, made[1]!.webhookId]);
      expect(first[0]!.body).toEqual(Buffer.from(made[0]!.body!));
      const rest = await port.after('acme', first[1]!.position, 9);
      expect(rest.map(({ webhookId }) => webhookId)).toEqual([made[2]!.webhookId, made[3]!.webhookId]);
      expect(await port.latest()).toBeGreaterThan(rest[1]!.position);
      const positions = first.map(({ position }) => position);
      expect(await port.ended('acme', positions)).toEqual([]);
      await port.finish(made[1]!.webhookId, SUCCEEDED);
      expect((await port.ended('acme', positions)).map(({ webhookId }) => webhookId)).toEqual([
        made[1]!.webhookId,
      ]);
      expect(await port.ended('other', positions)).toEqual([]);
    });

    test('positions are not reused after all deliveries were deleted', async () => {
      const { port, clock, delivery, reopen } = await openInbox();
      await port.begin(delivery(), undefined);
      const before = await port.latest();
      clock.advance(days(9));
      await port.prune({ receivedBefore: clock.now(), now: clock.now(), limit: 9 });
      const inbox = await reopen();
      await inbox.begin(delivery(), undefined);
      expect(await inbox.latest()).toBeGreaterThan(before);
    });

    test('a delivery that waits for a retry is unfinished and has the time of the retry', async () => {
      const { port, clock, delivery } = await openInbox();
      const retried = delivery({ mode: 'async', orderKey: 'customer-1' });
      await port.accept(retried, undefined, '');
      const nextAttemptAt = clock.now() + 1000;
      await port.finish(retried.webhookId, { ...SUCCEEDED, status: 'retrying', nextAttemptAt });
      expect(await port.unfinished(9)).toMatchObject([
        {
          webhookId: retried.webhookId,
          status: 'retrying',
          attempts: 1,
          nextAttemptAt,
          orderKey: 'customer-1',
        },
      ]);
      await port.finish(retried.webhookId, { ...SUCCEEDED, status: 'dead' });
      expect(await port.unfinished(9)).toEqual([]);
      expect(await port.find(retried.webhookId)).toMatchObject({ attempts: 2, nextAttemptAt: null });
    });

    test('a delivery that a crash left running is interrupted once, and its id is free for a redelivery', async () => {
      const { port, clock, delivery, lease, reopen } = await openInbox();
      const crashed = delivery();
      const waiting = delivery({ mode: 'async' });
      await port.begin(crashed, { key: 'crashed', expiresAt: lease() });
      await port.accept(waiting, { key: 'done', expiresAt: lease() }, '');
      const inbox = await reopen();
      expect(await inbox.seen('crashed', clock.now())).toBe('pending');
      expect([await inbox.interrupt(), await inbox.interrupt()]).toEqual([1, 0]);
      expect((await inbox.find(crashed.webhookId))?.status).toBe('interrupted');
      expect((await inbox.find(waiting.webhookId))?.status).toBe('accepted');
      expect(await inbox.begin(delivery(), { key: 'crashed', expiresAt: lease() })).toBe('begun');
      expect(await inbox.seen('done', clock.now())).toBe('done');
    });

    test('a handed over delivery runs again after a crash, and not after its end', async () => {
      const { port, clock, delivery, lease, reopen } = await openInbox();
      const [crashed, ended, sync] = [delivery(), delivery(), delivery()];
      for (const each of [crashed, ended])
        await port.begin(each, { key: each.webhookId, expiresAt: lease() });
      await port.begin(sync, { key: 'sync', expiresAt: lease() });
      const until = clock.now() + days(7);
      for (const { webhookId } of [crashed, ended])
        await port.handOver(webhookId, 'dispatch=accepted@1us', { key: webhookId, expiresAt: until });
      expect(await port.seen(crashed.webhookId, clock.now())).toBe('done');
      expect(await port.unfinished(9)).toEqual([]);
      await port.finish(ended.webhookId, SUCCEEDED);
      await port.handOver(ended.webhookId, 'late=1@1us');
      const inbox = await reopen();
      expect(await inbox.find(crashed.webhookId)).toMatchObject({
        status: 'running',
        mode: 'async',
        httpStatus: 202,
      });
      expect([await inbox.resume(), await inbox.resume(), await inbox.interrupt()]).toEqual([1, 0, 1]);
      expect((await inbox.unfinished(9)).map(({ webhookId }) => webhookId)).toEqual([crashed.webhookId]);
      expect(await inbox.find(crashed.webhookId)).toMatchObject({ status: 'accepted', attempts: 0 });
      expect(await inbox.find(ended.webhookId)).toMatchObject({
        status: 'succeeded',
        steps: 'dispatch=accepted@1us;["auth"]',
      });
      expect(await inbox.seen(crashed.webhookId, clock.now() + days(6))).toBe('done');
      expect(await inbox.seen('sync', clock.now())).toBeUndefined();
    });

    test('a replay is accepted regardless of its original, and its success completes their marker', async () => {
      const { port, clock, delivery, lease } = await openInbox();
      const failed = delivery();
      await port.begin(failed, { key: 'k', expiresAt: lease() });
      await port.finish(failed.webhookId, { ...SUCCEEDED, status: 'failed' }, { key: 'k', expiresAt: null });
      const original = (await port.find(failed.webhookId))!;
      const again = delivery({ mode: 'async', origin: 'replay', replayOf: failed.webhookId });
      await port.replay(again, '', original);
      expect(await port.find(failed.webhookId)).toMatchObject({ replayedBy: again.webhookId });
      const copy = (await port.find(again.webhookId))!;
      expect(copy).toMatchObject({ status: 'accepted', replayOf: failed.webhookId, marker: original.marker });
      expect(await port.isSettled(copy.marker!, clock.now())).toBe(false);
      await port.settleMarker(copy.marker!, clock.now() + days(7));
      expect(await port.seen('k', clock.now())).toBe('done');
      expect(await port.isSettled(copy.marker!, clock.now())).toBe(true);
      expect(await port.begin(delivery(), { key: 'k', expiresAt: lease() })).toBe('done');
    });

    test('when space is short, the oldest bodies are deleted first, then records, and never unfinished deliveries', async () => {
      const { port, delivery } = await openInbox();
      const body = new Uint8Array(20_000).fill(1);
      const waiting = delivery({ mode: 'async', body });
      await port.accept(waiting, undefined, '');
      const made = Array.from({ length: 6 }, () => delivery({ body }));
      await times(6, (i) => port.begin(made[i]!, undefined));
      await times(6, (i) => port.finish(made[i]!.webhookId, SUCCEEDED));
      expect(await port.shrink({ maxBytes: 10 ** 9, limit: 100 })).toBe(0);
      expect(await port.shrink({ maxBytes: 1, limit: 4 })).toBe(4);
      expect(await port.find(made[3]!.webhookId)).toMatchObject({
        body: null,
        bodyBytes: 20_000,
        status: 'succeeded',
      });
      expect((await port.find(made[4]!.webhookId))?.body).toHaveLength(20_000);
      expect(await port.shrink({ maxBytes: 1, limit: 4 })).toBe(2);
      expect(await port.shrink({ maxBytes: 1, limit: 4 })).toBe(4);
      expect(await port.find(made[3]!.webhookId)).toBeUndefined();
      expect(await port.shrink({ maxBytes: 1, limit: 4 })).toBe(2);
      expect(await port.shrink({ maxBytes: 1, limit: 4 })).toBe(0);
      expect((await port.find(waiting.webhookId))?.body).toHaveLength(20_000);
    });

    test('records of refused requests have a share of the space and are deleted before those of deliveries', async () => {
      const { port, delivery } = await openInbox();
      const body = new Uint8Array(20_000).fill(1);
      const handled = Array.from({ length: 5 }, () => delivery({ body }));
      for (const each of handled) {
        await port.begin(each, undefined);
        await port.finish(each.webhookId, SUCCEEDED);
      }
      const refused = Array.from({ length: 200 }, () => delivery({ headers: 'x'.repeat(500) }));
      const end = { status: 'refused', httpStatus: 401, steps: '', outcome: null, durationMs: 1 } as const;
      for (const each of refused) port.note(each, end);
      await port.flush();
      await port.latest();
      const left = async () => {
        const found = await Promise.all(refused.map(({ webhookId }) => port.find(webhookId)));
        return found.map((record) => record !== undefined);
      };
      // A tenth of 4 MB is room for 97 of them.
      while ((await port.shrink({ maxBytes: 4_000_000, limit: 30 })) > 0);
      expect(await left()).toEqual([...Array(103).fill(false), ...Array(97).fill(true)]);
      for (const { webhookId } of handled) expect((await port.find(webhookId))?.body).toHaveLength(20_000);
      // A tenth of 500 kB is room for some of them. How many depends on the size of an empty database.
      const further = await port.shrink({ maxBytes: 500_000, limit: 1000 });
      expect(further).toBeGreaterThan(80);
      expect(further).toBeLessThan(97);
      // Full, and too small for a share.
      expect(await port.shrink({ maxBytes: 100_000, limit: 1000 })).toBe(97 - further);
      for (const { webhookId } of handled) expect((await port.find(webhookId))?.body).toHaveLength(20_000);
    });

    test.each([200_000, 2000])(
      'short of room, no more bodies go than have to: of %i bytes each',
      async (size) => {
        const { port, delivery } = await openInbox();
        const count = 4_000_000 / size;
        const made = Array.from({ length: count }, () => delivery({ body: new Uint8Array(size).fill(1) }));
        await times(count, (i) => port.begin(made[i]!, undefined));
        await times(count, (i) => port.finish(made[i]!.webhookId, SUCCEEDED));
        // Until they are where size is measured.
        await port.latest();
        const maxBytes = (await emptyBytes()) + 2_600_000;
        while ((await port.shrink({ maxBytes, limit: 10_000 })) > 0);
        const left = await Promise.all(made.map(({ webhookId }) => port.find(webhookId)));
        expect(left).not.toContain(undefined);
        // Deliveries that are written at once get their positions in any order.
        left.sort((a, b) => a!.position - b!.position);
        const kept = left.filter((record) => record!.body !== null);
        expect(kept.length / count).toBeGreaterThan(0.2);
        expect(kept).toEqual(left.slice(-kept.length));
        expect(kept[0]!.body).toHaveLength(size);
      },
    );

    test('notes do not delay the caller, and flushed ones survive a restart', async () => {
      const { port, delivery, reopen } = await openInbox();
      const noted = Array.from({ length: 450 }, () => delivery());
      for (const each of noted) port.note(each, REFUSED);
      expect(await port.find(noted[449]!.webhookId)).toEqual({
        ...asStored(noted[449]!),
        ...REFUSED,
        attempts: 0,
      });
      port.note(delivery(), REFUSED);
      await port.flush();
      expect((await (await reopen()).list('acme', { limit: 1000 })).items).toHaveLength(451);
    });

    test.runIf(shared)('notes are on disk soon, without a flush', async () => {
      const { port, clock, delivery, second } = await openInbox();
      const other = await second();
      const noted = delivery();
      port.note(noted, REFUSED);
      clock.advance(1000);
      await expect.poll(() => other.find(noted.webhookId)).toMatchObject({ status: 'refused' });
    });

    test('a flood of notes is limited, and the inbox continues', async () => {
      const { port, delivery } = await openInbox();
      const flood = Array.from({ length: 5000 }, () => delivery({ body: null }));
      for (const each of flood) port.note(each, REFUSED);
      const kept = (await port.list('acme', { limit: 10_000 })).items.length;
      expect(kept).toBeGreaterThan(100);
      expect(kept).toBeLessThan(5000);
      const after = delivery();
      port.note(after, REFUSED);
      expect(await port.find(after.webhookId)).toBeDefined();
    });

    test('old deliveries and expired markers are deleted in batches, and unfinished deliveries are kept', async () => {
      const { port, clock, delivery, lease } = await openInbox();
      const waiting = delivery({ mode: 'async' });
      await port.accept(waiting, { key: 'done', expiresAt: clock.now() + days(7) }, '[]');
      const crashed = delivery();
      await port.begin(crashed, { key: 'lapsed', expiresAt: lease() });
      const finished = Array.from({ length: 4 }, () => delivery());
      await times(4, (i) => port.begin(finished[i]!, undefined));
      await times(4, (i) => port.finish(finished[i]!.webhookId, SUCCEEDED));
      clock.advance(days(1));
      const receivedBefore = clock.now();
      const young = delivery();
      await port.begin(young, undefined);

      const now = clock.now();
      // Whoever reads has all of it in the database, where pruning looks.
      await port.latest();
      expect(await port.prune({ receivedBefore, now, limit: 3 })).toBe(4);
      expect(await port.prune({ receivedBefore, now, limit: 3 })).toBe(2);
      expect(await port.prune({ receivedBefore, now, limit: 3 })).toBe(0);
      const left = (await port.list('acme', { limit: 9 })).items;
      expect(left.map(({ webhookId }) => webhookId)).toEqual([young.webhookId, waiting.webhookId]);
      expect(await port.seen('done', now)).toBe('done');
    });
  });
}
