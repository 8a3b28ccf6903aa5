import { setImmediate as nextTurn } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { ANALYTICS_SCHEMA } from '../../../src/contracts/index.ts';
import { days, hours } from '../../../src/kit/time/duration.ts';
import type { KeptEvent, LogFilter, TelemetryStore } from '../../../src/store/ports/telemetry.ts';
import { append, keptEvent as event, logRecord as log, NOON } from '../../support/telemetry.ts';
import { type OpenDriver, openFresh } from './driver.ts';

const PAGE = { limit: 100, offset: 0 };

/** Tests of the telemetry store that every driver passes. */
export function describeTelemetry(driver: string, openDriver: OpenDriver<TelemetryStore>): void {
  const open = async (): Promise<TelemetryStore> => (await openFresh(openDriver)).port;
  const messages = async (store: TelemetryStore, filter: LogFilter) =>
    (await store.logs(filter, PAGE)).items.map(({ message }) => message);

  describe(`${driver} telemetry`, () => {
    test('a record is read as it was written', async () => {
      const store = await open();
      const record = log({
        level: 'error',
        requestId: 'r',
        traceId: 't',
        spanId: 's',
        tenantId: 'acme',
        pluginId: '@acme/x',
        meta: { a: [1], runId: 'run1' },
        domain: 'auth',
        event: 'auth.failed',
        reasonCode: 'BAD_TOKEN',
        outcome: 'refused',
        evidence: { from: 'x' },
        error: { name: 'Error', message: 'no' },
      });
      await append(store, [{ ...record, runId: 'run1' }]);
      expect(await store.logs({}, { limit: 10, offset: 0 })).toEqual({
        items: [record],
        total: 1,
        dropped: { logs: 0, events: 0, unattributed: 0 },
      });
    });

    test.each<[string, Parameters<TelemetryStore['logs']>[0], string[]]>([
      ['nothing', {}, ['d', 'c', 'b', 'a']],
      ['level and above', { level: 'warn' }, ['d', 'c']],
      ['services', { services: ['rest', 'state'] }, ['c', 'b']],
      ['a request', { requestId: 'r1' }, ['b', 'a']],
      ['a request of a tenant', { requestId: 'r1', tenantId: 'other' }, ['b']],
      ['a trace', { traceId: 't1' }, ['c']],
      ['a tenant', { tenantId: 'acme' }, ['a']],
      ['a plugin', { pluginId: '@acme/x' }, ['d']],
      ['a run', { runId: 'run1' }, ['d']],
      ['from, included', { from: NOON + 2 }, ['d', 'c']],
      ['to, excluded', { to: NOON + 2 }, ['b', 'a']],
    ])('are found by %s', async (_name, filter, expected) => {
      const store = await open();
      await append(store, [
        log({ message: 'a', requestId: 'r1', tenantId: 'acme' }),
        log({ message: 'b', requestId: 'r1', tenantId: 'other', serviceId: 'rest', time: NOON + 1 }),
        log({ message: 'c', level: 'warn', traceId: 't1', serviceId: 'state', time: NOON + 2 }),
        log({ message: 'd', level: 'fatal', pluginId: '@acme/x', runId: 'run1', time: NOON + 3 }),
      ]);
      expect(await messages(store, filter)).toEqual(expected);
      expect((await store.logs(filter, { limit: 1, offset: 1 })).items).toHaveLength(
        expected.length > 1 ? 1 : 0,
      );
      expect((await store.logs(filter, { limit: 1, offset: 0 })).total).toBe(expected.length);
    });

    test.each<[string, string[]]>([
      ['connection', ['connection refused by db']],
      ['REFUSED db', ['connection refused by db']],
      ['conn', ['connection refused by db']],
      ['/api/v1/x', ['GET /api/v1/x 500']],
      ['refused 500', []],
      ['"; drop table log', []],
      ['NOT AND OR NEAR(', []],
      ['***', []],
    ])('are searched for %s', async (search, expected) => {
      const store = await open();
      await append(store, [
        log({ message: 'connection refused by db', requestId: 'r' }),
        log({ message: 'GET /api/v1/x 500', requestId: 'r' }),
      ]);
      expect(await messages(store, { search })).toEqual(expected);
      expect(await messages(store, { search, requestId: 'r' })).toEqual(expected);
      expect((await store.logsAfter({ search }, 0, 10)).map(({ record }) => record.message)).toEqual(
        expected,
      );
    });

    test('a stream continues after an id and misses no record', async () => {
      const store = await open();
      await append(store, [
        log({ message: 'a' }),
        log({ message: 'b', tenantId: 'acme' }),
        log({ message: 'c' }),
      ]);
      const { items, after } = await store.latestLogs({}, 2);
      expect(items.map(({ record }) => record.message)).toEqual(['b', 'c']);
      expect(await store.logsAfter({}, after, 10)).toEqual([]);
      await append(store, [log({ message: 'd', tenantId: 'acme' }), log({ message: 'e' })]);
      expect((await store.logsAfter({}, after, 10)).map(({ record }) => record.message)).toEqual(['d', 'e']);
      const ofTenant = await store.logsAfter({ tenantId: 'acme' }, 0, 10);
      expect(ofTenant.map(({ record }) => record.message)).toEqual(['b', 'd']);
      expect(ofTenant.map(({ id }) => id <= after)).toEqual([true, false]);
    });
    test('an event is read as it was written', async () => {
      const store = await open();
      await append(store, [], [event(NOON, { actor: 'ada' })]);
      expect(await store.events({}, { limit: 10, offset: 0 })).toEqual({
        total: 1,
        items: [
          {
            id: `e${NOON}`,
            schema: ANALYTICS_SCHEMA,
            type: 'plugin.command.completed',
            ts: '2030-01-02T12:00:00.000Z',
            ingestTs: '2030-01-02T12:00:00.005Z',
            source: { product: 'svc', version: '1' },
            runId: 'run1',
            actor: { type: 'user', id: 'ada' },
            payload: { durationMs: 1 },
          },
        ],
      });
    });

    test('events are found by their trace, newest first, and followed', async () => {
      const store = await open();
      const traced = (ts: number, traceId: string, tenantId: string | null = 'acme') => {
        const made = event(ts);
        return { ...made, tenantId, event: { ...made.event, ctx: { code: 'a\0b "traceId":"no"', traceId } } };
      };
      await append(store, [], [traced(NOON, 't1'), traced(NOON + 1, 't2'), traced(NOON + 2, 't1')]);
      await append(store, [], [traced(NOON + 3, 't1', 'other')]);
      const found = await store.events({ traceId: 't1', tenantId: 'acme' }, { limit: 1, offset: 0 });
      expect([found.total, found.items.map(({ ts }) => Date.parse(ts))]).toEqual([2, [NOON + 2]]);
      expect((await store.events({ traceId: 't1' }, { limit: 9, offset: 0 })).total).toBe(3);
      expect((await store.events({ traceId: 'no' }, { limit: 9, offset: 0 })).total).toBe(0);
      const followed = await store.eventsAfter({ traceId: 't1', tenantId: 'acme' }, 0, 9);
      expect(followed.map(({ record }) => Date.parse(record.ts))).toEqual([NOON, NOON + 2]);
      expect((await store.latestEvents({ traceId: 't2' }, 9)).items).toHaveLength(1);
    });

    test('totals equal the sum of the events for any time range', async () => {
      const store = await open();
      const step = hours(1) / 3;
      const all: KeptEvent[] = [];
      for (let n = 0; n < 400; n++) {
        all.push(
          event(NOON - days(3) + n * step, {
            type: n % 3 === 0 ? 'cache.hit' : 'plugin.command.completed',
            product: n % 5 === 0 ? '@acme/x' : 'svc',
            tenantId: n % 2 === 0 ? 'acme' : 'other',
            occurrences: 1 + (n % 4),
            ...(n % 7 === 0 ? { actor: `user${n % 3}` } : {}),
          }),
        );
      }
      await append(store, [], all.slice(0, 250));
      await append(store, [], all.slice(250));
      const ranges: Array<[number | undefined, number | undefined]> = [
        [undefined, undefined],
        [NOON - days(2), undefined],
        [NOON - days(2) - 1, NOON - hours(1) + 7],
        [NOON - step - 1, NOON + 1],
        [NOON, NOON + 1],
        [NOON - days(1) - hours(12), NOON + hours(12)],
        [NOON + days(30), NOON + days(31)],
      ];
      for (const [from, to] of ranges) {
        for (const rest of [{}, { tenantId: 'acme' }, { type: 'cache.hit', source: '@acme/x' }]) {
          const filter = {
            ...rest,
            ...(from === undefined ? {} : { from }),
            ...(to === undefined ? {} : { to }),
          };
          const expected = all.filter(
            ({ event: { type, source }, ts, tenantId }) =>
              ts >= (from ?? 0) &&
              ts < (to ?? Infinity) &&
              (!('tenantId' in rest) || rest.tenantId === tenantId) &&
              (!('type' in rest) || (rest.type === type && rest.source === source.product)),
          );
          const groups: Record<string, Record<string, number>> = { byType: {}, bySource: {}, byActor: {} };
          const perDay: Record<string, number> = {};
          const inc = (sums: Record<string, number>, key: string, by: number): void => {
            sums[key] = (sums[key] ?? 0) + by;
          };
          for (const { event: one, ts, occurrences } of expected) {
            inc(groups.byType!, one.type, occurrences);
            inc(groups.bySource!, one.source.product, occurrences);
            if (one.actor) inc(groups.byActor!, `user:${one.actor.id}`, occurrences);
            inc(perDay, new Date(ts).toISOString().slice(0, 10), occurrences);
          }
          const total = expected.reduce((sum, { occurrences }) => sum + occurrences, 0);
          expect(await store.stats(filter)).toEqual({ total, ...groups });
          expect((await store.daily(filter)).map(({ date, total }) => [date, total])).toEqual(
            Object.entries(perDay),
          );
          const list = await store.events(filter, { limit: 1000, offset: 0 });
          expect(list.total).toBe(expected.length);
          expect(list.items.map(({ ts }) => Date.parse(ts))).toEqual(expected.map(({ ts }) => ts).reverse());
        }
      }
    });

    test('an event above the rate is counted without being stored', async () => {
      const store = await open();
      await append(store, [], [event(NOON), event(NOON + 1, { keep: false, occurrences: 4 })]);
      expect((await store.stats({})).total).toBe(5);
      expect(await store.events({}, { limit: 10, offset: 0 })).toMatchObject({ total: 1, items: [{}] });
    });

    test('old events are deleted together with their counts', async () => {
      const store = await open();
      await append(store, [], [event(NOON - days(2)), event(NOON)]);
      await pruneAll(store, { eventsBefore: NOON - days(1) });
      expect((await store.stats({})).total).toBe(1);
      expect((await store.events({}, { limit: 9, offset: 0 })).total).toBe(1);
    });

    test('when the file is too large, the oldest log records are deleted first and event totals stay', async () => {
      const store = await open();
      for (let n = 0; n < 4; n++) {
        await append(
          store,
          Array.from({ length: 2000 }, (_, i) =>
            log({ message: `m${n}`, time: NOON + n, meta: { i, pad: 'x'.repeat(300) } }),
          ),
          [event(NOON + n)],
        );
      }
      await pruneAll(store, { maxBytes: 2_000_000 });
      const left = (await store.logs({}, { limit: 1, offset: 0 })).total;
      expect(left).toBeGreaterThan(0);
      expect(left).toBeLessThan(8000);
      expect(await messages(store, { to: NOON + 1 })).toEqual([]);
      expect((await store.stats({})).total).toBe(4);
    });

    test('pages and totals span several days', async () => {
      const store = await open();
      const at = (n: number) => NOON + (n % 5) * days(0.5) - days(2) + n;
      const times = Array.from({ length: 60 }, (_, n) => at(n));
      for (let n = 0; n < 60; n += 20) {
        const some = times.slice(n, n + 20);
        await append(
          store,
          some.map((time) => log({ time, tenantId: 'acme' })),
          some.map((time) => event(time)),
        );
      }
      const expected = times.toSorted((a, b) => b - a);
      for (const offset of [0, 1, 25, 55, 60]) {
        const page = { limit: 10, offset };
        const { items, total } = await store.logs({ tenantId: 'acme' }, page);
        expect(items.map(({ time }) => time)).toEqual(expected.slice(offset, offset + 10));
        expect(total).toBe(60);
        const events = await store.events({}, page);
        expect(events.items.map(({ ts }) => Date.parse(ts))).toEqual(expected.slice(offset, offset + 10));
        expect(events.total).toBe(60);
      }
      const latest = await store.latestEvents({}, 60);
      expect(await store.eventsAfter({}, 0, 60)).toEqual(latest.items);
      expect(await store.eventsAfter({}, latest.items[49]!.id, 5)).toEqual(latest.items.slice(50, 55));
    });

    test('counts are summed over batches', async () => {
      const store = await open();
      for (const kept of [2, 3])
        await store.append({ logs: [], events: [], counts: { 'logs.kept': kept, 'logs.dropped': 0 } });
      expect(await store.counts()).toEqual({ 'logs.kept': 5 });
    });

    test('dropped records are summed by minute, service and tenant', async () => {
      const store = await open();
      const minute = NOON;
      const lines = { kind: 'logs', service: 'rest', tenantId: 'acme', minute, count: 2 } as const;
      const dropped = [
        lines,
        { ...lines, tenantId: null },
        { ...lines, kind: 'events', tenantId: '' } as const,
      ];
      for (let n = 0; n < 2; n++) await store.append({ logs: [], events: [], counts: {}, dropped });
      const of = async (filter: LogFilter) => (await store.logs(filter, PAGE)).dropped;
      expect(await of({})).toEqual({ logs: 8, events: 4, unattributed: 4 });
      expect(await of({ tenantId: 'acme', services: ['rest'] })).toEqual({
        logs: 4,
        events: 0,
        unattributed: 4,
      });
      expect(await of({ from: NOON + 60_000 })).toEqual({ logs: 0, events: 0, unattributed: 0 });
    });

    test('records of two writers are found by both, and a stream reads them in the order of their ids', async () => {
      const { port, second } = await openFresh(openDriver);
      const writers = [port, await second()];
      const { after } = await port.latestLogs({}, 0);
      const seen: number[] = [];
      const follow = async (): Promise<void> => {
        for (let last = after; seen.length < 400; ) {
          const found = await port.logsAfter({}, last, 50);
          seen.push(...found.map(({ record }) => Number(record.message)));
          last = found.at(-1)?.id ?? last;
          // Lets writers run whose driver works in timers.
          await nextTurn();
        }
      };
      const write = async (store: TelemetryStore, first: number): Promise<void> => {
        for (let n = 0; n < 20; n++)
          await append(
            store,
            Array.from({ length: 10 }, (_, i) => log({ message: String(first + n * 10 + i) })),
            [event(NOON + n)],
          );
      };
      await Promise.all([follow(), ...writers.map((store, n) => write(store, n * 200))]);
      expect(seen.toSorted((a, b) => a - b)).toEqual(Array.from({ length: 400 }, (_, n) => n));
      for (const store of writers) {
        expect((await store.logs({}, PAGE)).total).toBe(400);
        expect((await store.stats({})).total).toBe(40);
      }
    });

    test('any text of a process can be stored', async () => {
      const store = await open();
      const odd = 'a\0b \ud800 "quoted" \\ back café '.concat('long'.repeat(1000));
      await append(store, [log({ message: odd, meta: { odd } })], [event(NOON, { actor: odd })]);
      expect((await store.logs({ search: 'quoted cafe' }, PAGE)).items).toMatchObject([
        { message: expect.stringContaining('"quoted" \\ back café long'), meta: { odd } },
      ]);
      expect((await store.stats({})).total).toBe(1);
    });

    test('the newest use of each permission is known exactly, per plugin and tenant, until it expires', async () => {
      const store = await open();
      const use = (ts: number, permission: unknown, fields: Parameters<typeof event>[1] = {}) =>
        event(ts, { type: 'plugin.permission.used', ...fields, payload: { pluginId: 'a', permission } });
      const other = event(NOON, {
        type: 'plugin.permission.used',
        payload: { pluginId: 'b', permission: 'x' },
      });
      await append(store, [], [use(NOON + 2, 'platform.state'), use(NOON + 1, 'platform.state'), other]);
      // Uses are also noted if their events exceed the rate and are not kept.
      await append(
        store,
        [],
        [use(NOON + 1, 'network a.example', { keep: false }), use(NOON, 'platform.state')],
      );
      await append(store, [], [use(NOON + 9, 'platform.state', { tenantId: 'other' })]);
      // Neither an event of a plugin nor a malformed one is a use.
      await append(
        store,
        [],
        [use(NOON + 5, 'platform.cache', { product: 'a' }), use(NOON, 7), use(NOON, undefined)],
      );
      expect(await store.permissionUses({ pluginId: 'a', tenantId: 'acme' })).toEqual([
        { permission: 'network a.example', usedAt: NOON + 1 },
        { permission: 'platform.state', usedAt: NOON + 2 },
      ]);
      expect(await store.permissionUses({ pluginId: 'a' })).toEqual([
        { permission: 'network a.example', usedAt: NOON + 1 },
        { permission: 'platform.state', usedAt: NOON + 9 },
      ]);
      expect(await store.permissionUses({ pluginId: 'c' })).toEqual([]);
      const limits = { logsBefore: 0, eventsBefore: NOON + 2, maxBytes: 1e12 };
      while (await store.prune(limits));
      expect(await store.permissionUses({ pluginId: 'a', tenantId: 'acme' })).toEqual([
        { permission: 'platform.state', usedAt: NOON + 2 },
      ]);
    });
  });
}

async function pruneAll(store: TelemetryStore, limits: Partial<Parameters<TelemetryStore['prune']>[0]>) {
  let calls = 0;
  while (await store.prune({ logsBefore: 0, eventsBefore: 0, maxBytes: 1e9, ...limits })) calls++;
  return calls;
}
