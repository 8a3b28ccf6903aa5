import { Webhook } from 'standardwebhooks';
import { Webhook as SvixWebhook } from 'svix';
import { expect, test } from 'vitest';
import {
  createEndpoint,
  deleteEndpoint,
  getEndpoint,
  getMessage,
  listEndpointAttempts,
  listEndpoints,
  listMessageAttempts,
  listMessages,
  publishMessage,
  replayEndpoint,
  replayMessage,
  replayMessages,
  rotateEndpoint,
  testEndpoint,
  updateEndpoint,
} from '../../../../src/contracts/index.ts';
import { type ManualClock, manualClock, systemClock } from '../../../../src/kit/time/clock.ts';
import { days, hours, minutes, seconds } from '../../../../src/kit/time/duration.ts';
import { OTHER_TOKEN, startGateway, type TestGateway } from '../../../support/gateway.ts';
import { type ReceivedMessage, startReceiver, withStatus } from '../../../support/message-receiver.ts';
import { describeOnStores } from '../../../support/stores.ts';

const LOOPBACK = { outgoing: { allowPrivateAddresses: true } };
/** Verification libraries compare timestamps with the time of the machine. */
const clockOfToday = (): ManualClock => manualClock(Date.now());

function apiOf(gateway: TestGateway, token?: string) {
  return {
    create: (body: { url: string } & Record<string, unknown>) =>
      gateway.call(createEndpoint, { body }, token),
    publish: (type: string, data: unknown = {}, more: object = {}) =>
      gateway.call(publishMessage, { body: { type, data, ...more } }, token),
    message: (id: string) => gateway.call(getMessage, { params: { id } }, token),
    endpoint: (id: string) => gateway.call(getEndpoint, { params: { id } }, token),
    update: (id: string, body: object) => gateway.call(updateEndpoint, { params: { id }, body }, token),
    attempts: async (id: string) =>
      (await gateway.call(listMessageAttempts, { params: { id }, query: {} }, token)).items,
  };
}

function verified({ headers, body }: ReceivedMessage, secret: string): unknown {
  const signed = headers as Record<string, string>;
  const data = new Webhook(secret).verify(body, signed);
  // This library throws, too, but returns nothing.
  new SvixWebhook(secret).verify(body, svixHeaders(signed));
  return data;
}

/** The library of Svix reads the same headers by its own names, too. */
function svixHeaders(headers: Record<string, string>): Record<string, string> {
  return Object.fromEntries(
    ['id', 'timestamp', 'signature'].map((name) => [`svix-${name}`, headers[`webhook-${name}`]!]),
  );
}

describeOnStores(
  'messages',
  (config) => {
    const start = async (more: object = {}, clock: ManualClock = systemClock as ManualClock) => {
      const store = await config();
      // A gateway that shares its store loses its lease when the clock is moved by days.
      const shares = { sharesStore: 'store' in store && clock === systemClock };
      return startGateway({ clock, config: { ...store, ...LOOPBACK, ...more }, ...shares });
    };

    test('a message reaches the endpoints of its type, signed as Standard Webhooks specify', async () => {
      const gateway = await start();
      const api = apiOf(gateway);
      const receiver = await startReceiver();
      const url = receiver.url;
      const all = await api.create({ url: `${url}/all`, headers: { 'X-Key': 'abc' } });
      const prefix = await api.create({ url: `${url}/orders`, types: ['order.*'] });
      await api.create({ url: `${url}/other`, types: ['order', 'orders.created', 'user.created'] });
      await api.create({ url: `${url}/disabled`, disabled: true });
      expect(all.secret).toMatch(/^whsec_/);
      expect(all.headers).toEqual({ 'X-Key': '[masked]' });
      const sent = await api.publish('order.created', { id: 7, text: 'ü\u0000"' }, { timestamp: 1000 });
      expect(sent).toMatchObject({ timestamp: 1000, duplicate: false, endpoints: 2 });
      await expect.poll(() => receiver.received.length).toBe(2);
      const byPath = (path: string) => receiver.received.find((message) => message.path.endsWith(path))!;
      const expected = {
        type: 'order.created',
        timestamp: '1970-01-01T00:00:01.000Z',
        data: { id: 7, text: 'ü\u0000"' },
      };
      expect(verified(byPath('/all'), all.secret)).toEqual(expected);
      expect(verified(byPath('/orders'), prefix.secret)).toEqual(expected);
      expect(() => verified(byPath('/orders'), all.secret)).toThrow();
      expect(byPath('/all').headers).toMatchObject({
        ...{ 'webhook-id': sent.id, 'content-type': 'application/json', 'x-key': 'abc' },
      });
      await expect
        .poll(() => api.message(sent.id))
        .toMatchObject({ data: expected.data, deliveries: { succeeded: 2, waiting: 0 } });
      expect(await api.attempts(sent.id)).toMatchObject([
        { outcome: 'succeeded', number: 1, trigger: 'first', responseStatus: 200, responseExcerpt: null },
        { outcome: 'succeeded' },
      ]);
    });

    test('keys of handlers of ended runs are refused to callers', async () => {
      const gateway = await start();
      const published = apiOf(gateway).publish('order.failed', {}, { idempotencyKey: 'end/run_1/0' });
      const message = 'Keys that start with "end/" are reserved for handlers of ended runs. Use another key.';
      await expect(published).rejects.toMatchObject({
        code: 'VALIDATION_ERROR',
        details: { issues: [{ path: 'body.idempotencyKey', message }] },
      });
      const { items } = await gateway.call(listMessages, { query: {} as never });
      expect(items).toEqual([]);
    });

    test('event types are words with full stops between them, as Standard Webhooks specify', async () => {
      const api = apiOf(await start());
      const accepted = (type: string) =>
        api.publish(type).then(
          () => true,
          ({ code }) => code,
        );
      for (const type of ['a', 'order.created', 'Order_2.paid-late', '_x.y'])
        expect([type, await accepted(type)]).toEqual([type, true]);
      for (const type of [
        '',
        '.a',
        'a.',
        'a..b',
        'a b',
        'a:b',
        'a/b',
        'ä',
        'a\n',
        '*',
        'a.*',
        'x'.repeat(129),
      ])
        expect([type, await accepted(type)]).toEqual([type, 'VALIDATION_ERROR']);
      for (const type of ['a:b', '*.a', 'a*', 'a.*.b'])
        await expect(api.create({ url: 'http://example.com', types: [type] })).rejects.toMatchObject({
          code: 'VALIDATION_ERROR',
        });
    });

    test('an application narrows a message to its own endpoints', async () => {
      const api = apiOf(await start());
      const receiver = await startReceiver();
      await api.create({ url: `${receiver.url}/none` });
      await api.create({ url: `${receiver.url}/a`, application: 'a' });
      await api.create({ url: `${receiver.url}/b`, application: 'b' });
      expect(await api.publish('x', 1, { application: 'a' })).toMatchObject({ endpoints: 1 });
      expect(await api.publish('x', 2)).toMatchObject({ endpoints: 1 });
      await expect
        .poll(() => receiver.received.map(({ path }) => path).sort())
        .toEqual(['/hook/a', '/hook/none']);
    });

    test('another namespace sees and changes nothing', async () => {
      const gateway = await start();
      const [mine, other] = [apiOf(gateway), apiOf(gateway, OTHER_TOKEN)];
      const receiver = await startReceiver();
      const { id } = await mine.create({ url: receiver.url });
      expect(await other.publish('x')).toMatchObject({ endpoints: 0 });
      const message = await mine.publish('x');
      const denied = expect.objectContaining({ code: 'NOT_FOUND' });
      const params = { id };
      const calls = [
        () => other.endpoint(id),
        () => other.update(id, { disabled: true }),
        () => gateway.call(deleteEndpoint, { params }, OTHER_TOKEN),
        () => gateway.call(rotateEndpoint, { params, body: {} }, OTHER_TOKEN),
        () => gateway.call(testEndpoint, { params, body: {} }, OTHER_TOKEN),
        () => gateway.call(listEndpointAttempts, { params, query: {} }, OTHER_TOKEN),
        () => gateway.call(replayEndpoint, { params, body: {} }, OTHER_TOKEN),
        () => gateway.call(replayMessages, { body: { endpointId: id } }, OTHER_TOKEN),
        () => other.message(message.id),
        () => other.attempts(message.id),
        () => gateway.call(replayMessage, { params: { id: message.id }, body: {} }, OTHER_TOKEN),
      ];
      for (const call of calls) await expect(call()).rejects.toEqual(denied);
      const listed = await gateway.call(listEndpoints, { query: {} }, OTHER_TOKEN);
      expect(listed.items).toEqual([]);
      const list = async (query: object) => (await gateway.call(listMessages, { query }, OTHER_TOKEN)).items;
      expect(await list({ endpointId: id })).toEqual([]);
      expect((await list({})).map((item) => item.id)).not.toContain(message.id);
    });

    test('of many publishes with one key, one is sent; other content is a conflict', async () => {
      const gateway = await start();
      const api = apiOf(gateway);
      const receiver = await startReceiver();
      await api.create({ url: receiver.url });
      const key = { idempotencyKey: 'order 7' };
      const results = await Promise.all(
        Array.from({ length: 20 }, () => api.publish('x', { a: 1, b: 2 }, key)),
      );
      expect(new Set(results.map(({ id }) => id)).size).toBe(1);
      expect(results.filter(({ duplicate }) => !duplicate)).toHaveLength(1);
      expect(await api.publish('x', { b: 2, a: 1 }, key)).toMatchObject({ duplicate: true, endpoints: 1 });
      await expect(api.publish('x', { a: 2 }, key)).rejects.toMatchObject({ code: 'CONFLICT' });
      expect(await api.publish('x', { a: 2 }, { ...key, application: 'a' })).toMatchObject({
        duplicate: false,
      });
      await expect.poll(() => receiver.ids()).toEqual([results[0]!.id]);
    });

    test('a failed message is repeated by the schedule with the same id, then it is dead, and is replayed', async () => {
      const clock = clockOfToday();
      const gateway = await start({}, clock);
      const api = apiOf(gateway);
      const receiver = await startReceiver();
      receiver.answer(withStatus(500));
      const { id: endpointId } = await api.create({ url: receiver.url, retrySchedule: [5, 60] });
      const { id } = await api.publish('x');
      const status = async () => (await api.message(id)).endpoints[0];
      await expect
        .poll(status)
        .toMatchObject({ status: 'retrying', attempts: 1, lastStatus: 500, lastError: 'HTTP 500' });
      const { nextAttemptAt } = (await status())!;
      expect(nextAttemptAt! - clock.now()).toBeGreaterThanOrEqual(seconds(5));
      expect(nextAttemptAt! - clock.now()).toBeLessThanOrEqual(seconds(6));
      clock.advance(seconds(5) - 1);
      expect(receiver.received).toHaveLength(1);
      clock.advance(seconds(1) + 1);
      await expect.poll(status).toMatchObject({ status: 'retrying', attempts: 2 });
      clock.advance(seconds(72));
      await expect.poll(status).toMatchObject({ status: 'dead', attempts: 3, nextAttemptAt: null });
      expect(receiver.ids()).toEqual([id, id, id]);
      const timestamps = receiver.received.map(({ headers }) => Number(headers['webhook-timestamp']));
      expect(timestamps[1]! - timestamps[0]!).toBeGreaterThanOrEqual(5);
      const dead = await gateway.call(listMessages, { query: { status: 'dead', endpointId } });
      expect(dead.items.map((item) => item.id)).toEqual([id]);
      receiver.answer(withStatus(204));
      const replayed = await gateway.call(replayMessage, { params: { id }, body: {} });
      expect(replayed).toEqual({ items: [{ messageId: id, endpointId }], skipped: 0 });
      await expect
        .poll(status)
        .toMatchObject({ status: 'succeeded', attempts: 4, lastStatus: 204, lastError: null });
      expect((await api.attempts(id)).map(({ trigger }) => trigger)).toEqual([
        'replay',
        'retry',
        'retry',
        'first',
      ]);
      expect((await api.attempts(id))[3]).toMatchObject({ responseExcerpt: 'answer 500', error: 'HTTP 500' });
    });

    test('the default schedule has seven retries over 27.6 hours', async () => {
      const clock = clockOfToday();
      const api = apiOf(await start({}, clock));
      const receiver = await startReceiver();
      receiver.answer(withStatus(503));
      await api.create({ url: receiver.url });
      const { id } = await api.publish('x');
      for (const [index, wait] of [5, 300, 1800, 7200, 18_000, 36_000, 50_400].entries()) {
        await expect
          .poll(async () => (await api.message(id)).endpoints[0])
          .toMatchObject({ status: 'retrying', attempts: index + 1 });
        clock.advance(seconds(wait) - 1);
        expect(receiver.received).toHaveLength(index + 1);
        clock.advance(seconds(wait) * 0.2 + 2);
      }
      await expect
        .poll(async () => (await api.message(id)).endpoints[0])
        .toMatchObject({ status: 'dead', attempts: 8 });
    });

    test('Retry-After delays the next attempt, in seconds or as a date, at most a day', async () => {
      const clock = clockOfToday();
      const api = apiOf(await start({}, clock));
      const receiver = await startReceiver();
      const date = new Date(clock.now() + minutes(30)).toUTCString();
      receiver.answer(({ path }, response) => {
        const after = { '/hook/s': '120', '/hook/d': date, '/hook/l': '9999999', '/hook/x': 'soon' }[path];
        withStatus(429, { 'retry-after': after! })({} as ReceivedMessage, response);
      });
      const waits: number[] = [];
      for (const path of ['s', 'd', 'l', 'x']) {
        const { id: endpointId } = await api.create({ url: `${receiver.url}/${path}`, retrySchedule: [5] });
        const { id } = await api.publish('x');
        const delivery = async () =>
          (await api.message(id)).endpoints.find((each) => each.endpointId === endpointId);
        await expect.poll(async () => (await delivery())?.status).toBe('retrying');
        waits.push(((await delivery())!.nextAttemptAt! - clock.now()) / 1000);
      }
      expect(waits[0]).toBe(120);
      expect(waits[1]).toBeGreaterThan(1797);
      expect(waits[1]).toBeLessThanOrEqual(1800);
      expect(waits[2]).toBe(86_400);
      expect(waits[3]).toBeLessThanOrEqual(6);
    });

    test('410 disables an endpoint at once, and its messages are dead until it is enabled', async () => {
      const gateway = await start();
      const api = apiOf(gateway);
      const receiver = await startReceiver();
      receiver.answer(withStatus(410));
      const { id: endpointId } = await api.create({ url: receiver.url });
      const { id } = await api.publish('x');
      await expect
        .poll(() => api.endpoint(endpointId))
        .toMatchObject({ disabled: true, disabledReason: 'gone', disabledAt: expect.any(Number) });
      await expect.poll(async () => (await api.message(id)).deliveries.dead).toBe(1);
      expect(await api.publish('x')).toMatchObject({ endpoints: 0 });
      const replay = () => gateway.call(replayMessage, { params: { id }, body: { endpointId } });
      await expect(replay()).rejects.toMatchObject({ code: 'CONFLICT' });
      receiver.answer(withStatus(200));
      expect(await api.update(endpointId, { disabled: false })).toMatchObject({
        disabled: false,
        failingSince: null,
      });
      await replay();
      await expect.poll(async () => (await api.message(id)).deliveries.succeeded).toBe(1);
    });

    test('five days of failures disable an endpoint; a success between starts them anew', async () => {
      const clock = clockOfToday();
      const api = apiOf(await start({}, clock));
      const receiver = await startReceiver();
      receiver.answer(withStatus(500));
      const { id: endpointId } = await api.create({ url: receiver.url, retrySchedule: [] });
      const sendAndWait = async (status: 'dead' | 'succeeded') => {
        const { id } = await api.publish('x');
        await expect.poll(async () => (await api.message(id)).deliveries[status]).toBe(1);
      };
      await sendAndWait('dead');
      clock.advance(days(4));
      receiver.answer(withStatus(200));
      await sendAndWait('succeeded');
      expect(await api.endpoint(endpointId)).toMatchObject({ disabled: false, failingSince: null });
      receiver.answer(withStatus(500));
      await sendAndWait('dead');
      const failingSince = clock.now();
      clock.advance(days(5) - 1);
      await sendAndWait('dead');
      expect(await api.endpoint(endpointId)).toMatchObject({ disabled: false, failingSince });
      clock.advance(1);
      await sendAndWait('dead');
      await expect.poll(() => api.endpoint(endpointId)).toMatchObject({ disabledReason: 'failures' });
    });

    test('for 24 hours after a rotation, messages have signatures by both secrets', async () => {
      const clock = clockOfToday();
      const gateway = await start({}, clock);
      const api = apiOf(gateway);
      const receiver = await startReceiver();
      const { id, secret } = await api.create({ url: receiver.url });
      const rotated = await gateway.call(rotateEndpoint, { params: { id }, body: {} });
      expect(rotated.previousExpiresAt).toBe(clock.now() + hours(24));
      const receive = async () => {
        const count = receiver.received.length;
        await api.publish('x');
        await expect.poll(() => receiver.received.length).toBe(count + 1);
        return receiver.received.at(-1)!;
      };
      const both = await receive();
      verified(both, secret);
      verified(both, rotated.secret);
      clock.advance(hours(24));
      const one = await receive();
      expect(String(one.headers['webhook-signature']).split(' ')).toHaveLength(1);
      expect(await api.endpoint(id)).toMatchObject({ previousSecretExpiresAt: null });
    });

    test('a test message is sent once, and its attempt is the answer', async () => {
      const gateway = await start();
      const api = apiOf(gateway);
      const receiver = await startReceiver();
      receiver.answer(withStatus(500));
      const { id, secret } = await api.create({ url: receiver.url, disabled: true });
      const call = (body: object) => gateway.call(testEndpoint, { params: { id }, body });
      expect(await call({})).toMatchObject({
        ...{ endpointId: id, type: 'webhook.test', trigger: 'test', outcome: 'failed', responseStatus: 500 },
        ...{ responseExcerpt: 'answer 500', nextAttemptAt: null },
      });
      receiver.answer(withStatus(200));
      expect(await call({ type: 'order.created', data: { n: 1 } })).toMatchObject({ outcome: 'succeeded' });
      expect(verified(receiver.received[1]!, secret)).toMatchObject({
        type: 'order.created',
        data: { n: 1 },
      });
      const { items } = await gateway.call(listEndpointAttempts, {
        params: { id },
        query: { outcome: 'failed' },
      });
      expect(items).toHaveLength(1);
      expect(await api.endpoint(id)).toMatchObject({ failingSince: null });
      // A failed test is no dead letter, so it is not replayed.
      const dead = await gateway.call(listMessages, { query: { status: 'dead' } });
      expect(dead.items).toEqual([]);
      await api.update(id, { disabled: false });
      const replayed = await gateway.call(replayEndpoint, { params: { id }, body: { status: 'dead' } });
      expect(replayed.items).toEqual([]);
    });

    test('messages are found by their trace, within their namespace', async () => {
      const gateway = await start();
      const { id, traceId } = await apiOf(gateway)
        .publish('order.created')
        .then(({ id: published }) => apiOf(gateway).message(published));
      await apiOf(gateway).publish('order.created');
      const list = async (query: object, token?: string) =>
        (await gateway.call(listMessages, { query: { traceId, ...query } }, token)).items;
      expect((await list({})).map((message) => message.id)).toEqual([id]);
      expect(await list({ type: 'other' })).toEqual([]);
      expect(await list({}, OTHER_TOKEN)).toEqual([]);
    });

    test('an endpoint shows how many of its newest attempts succeeded', async () => {
      const gateway = await start();
      const api = apiOf(gateway);
      const receiver = await startReceiver();
      const { id, recentAttempts } = await api.create({ url: receiver.url });
      expect(recentAttempts).toEqual({ total: 0, succeeded: 0 });
      for (const status of [200, 200, 500]) {
        receiver.answer(withStatus(status));
        await gateway.call(testEndpoint, { params: { id }, body: {} });
      }
      const expected = { total: 3, succeeded: 2 };
      expect((await api.endpoint(id)).recentAttempts).toEqual(expected);
      const { items } = await gateway.call(listEndpoints, { query: {} });
      expect(items.map((each) => each.recentAttempts)).toEqual([expected]);
    });

    test('a bulk replay is counted first, goes on by its cursor, and repeats nothing', async () => {
      const gateway = await start();
      const api = apiOf(gateway);
      const receiver = await startReceiver();
      receiver.answer(withStatus(400));
      const { id: endpointId } = await api.create({ url: receiver.url, retrySchedule: [] });
      const ids: string[] = [];
      for (let n = 0; n < 5; n++) ids.push((await api.publish(n < 4 ? 'a' : 'b')).id);
      const countOf = async (status: 'dead' | 'succeeded') =>
        (await gateway.call(listMessages, { query: { status } })).items.length;
      await expect.poll(() => countOf('dead')).toBe(5);
      receiver.answer(withStatus(200));
      const replay = (body: object) => gateway.call(replayMessages, { body: { type: 'a', ...body } });
      const dry = await replay({ dryRun: true });
      expect(dry.matching).toMatchObject({ count: 4, isComplete: true });
      const first = await replay({ cursor: dry.nextCursor!, limit: 2 });
      expect(first.items.map(({ messageId }) => messageId)).toEqual(ids.slice(0, 2));
      expect(
        (await replay({ cursor: dry.nextCursor!, limit: 2 })).items.map(({ messageId }) => messageId),
      ).toEqual(ids.slice(2, 4));
      expect((await replay({ cursor: first.nextCursor! })).items).toEqual([]);
      await expect.poll(() => countOf('succeeded')).toBe(4);
      await expect(
        gateway.call(replayMessages, { body: { type: 'b', cursor: dry.nextCursor! } }),
      ).rejects.toMatchObject({ code: 'VALIDATION_ERROR' });
      const all = await gateway.call(replayEndpoint, { params: { id: endpointId }, body: { status: 'all' } });
      expect(all.items).toHaveLength(5);
      await expect.poll(() => receiver.received.length).toBe(14);
    });

    test('a deleted endpoint receives nothing more, and its waiting messages are cancelled', async () => {
      const clock = clockOfToday();
      const gateway = await start({}, clock);
      const api = apiOf(gateway);
      const receiver = await startReceiver();
      receiver.answer(withStatus(500));
      const { id: endpointId } = await api.create({ url: receiver.url });
      const { id } = await api.publish('x');
      await expect.poll(async () => (await api.message(id)).deliveries.retrying).toBe(1);
      await gateway.call(deleteEndpoint, { params: { id: endpointId } });
      await expect
        .poll(async () => (await api.message(id)).endpoints)
        .toMatchObject([{ status: 'cancelled', url: null, lastError: 'The endpoint was deleted' }]);
      clock.advance(days(2));
      expect(receiver.received).toHaveLength(1);
      expect((await gateway.call(replayMessage, { params: { id }, body: {} })).skipped).toBe(1);
    });

    test('messages of an ordered endpoint arrive in order, behind one that fails', async () => {
      const clock = clockOfToday();
      const api = apiOf(await start({}, clock));
      const receiver = await startReceiver();
      await api.create({ url: `${receiver.url}/ordered`, ordered: true, retrySchedule: [5] });
      await api.create({ url: `${receiver.url}/free` });
      const orderOf = (path: string) =>
        receiver.received.filter((message) => message.path === path).map(({ body }) => JSON.parse(body).data);
      receiver.answer(({ body, path }, response) => {
        const fails = path === '/hook/ordered' && JSON.parse(body).data === 3 && orderOf(path).length < 5;
        withStatus(fails ? 500 : 200)({} as ReceivedMessage, response);
      });
      for (let n = 0; n < 20; n++) await api.publish('x', n);
      await expect.poll(() => orderOf('/hook/free').length).toBe(20);
      await expect.poll(() => orderOf('/hook/ordered')).toEqual([0, 1, 2, 3]);
      await expect
        .poll(async () => {
          clock.advance(seconds(1));
          return orderOf('/hook/ordered');
        })
        .toEqual([0, 1, 2, 3, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19]);
    });

    test('an endpoint gets no more attempts per second than its rate, and others do not wait', async () => {
      const clock = clockOfToday();
      const api = apiOf(await start({}, clock));
      const receiver = await startReceiver();
      await api.create({ url: `${receiver.url}/slow`, rateLimitPerSecond: 2 });
      await api.create({ url: `${receiver.url}/fast` });
      const countOf = (path: string) => receiver.received.filter((message) => message.path === path).length;
      for (let n = 0; n < 10; n++) await api.publish('x', n);
      await expect.poll(() => countOf('/hook/fast')).toBe(10);
      expect(countOf('/hook/slow')).toBe(2);
      for (const expected of [4, 6, 8, 10]) {
        for (let step = 0; step < 10; step++) {
          clock.advance(100);
          await expect
            .poll(() => countOf('/hook/slow'))
            .toBeGreaterThanOrEqual(expected - 2 + Math.floor((step + 1) / 5));
        }
        expect(countOf('/hook/slow')).toBe(expected);
      }
    });
  },
  { timeout: 60_000 },
);
