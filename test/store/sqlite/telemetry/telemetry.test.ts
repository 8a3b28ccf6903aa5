import { execFile } from 'node:child_process';
import { getPriority } from 'node:os';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { describe, expect, onTestFinished, test } from 'vitest';
import { ANALYTICS_SCHEMA } from '../../../../src/contracts/index.ts';
import { EVENT_LINE } from '../../../../src/kit/telemetry/analytics.ts';
import { manualClock } from '../../../../src/kit/time/clock.ts';
import { days, hours, minutes } from '../../../../src/kit/time/duration.ts';
import type { KeptEvent, LogFilter, TelemetryStore } from '../../../../src/store/ports/telemetry.ts';
import { Ingest } from '../../../../src/store/sqlite/telemetry/ingest.ts';
import { createTelemetryReader } from '../../../../src/store/sqlite/telemetry/reader.ts';
import { startTelemetryWriter } from '../../../../src/store/sqlite/telemetry/writer.ts';
import { tempDir } from '../../../support/daemon.ts';
import {
  append,
  keptEvent as event,
  logRecord as log,
  NOON,
  openTelemetry,
} from '../../../support/telemetry.ts';

const RETENTION = { logsDays: 7, analyticsDays: 400, telemetryMaxBytes: 1e9 };

const open = async (): Promise<TelemetryStore> => openTelemetry(await tempDir());
const messages = async (store: TelemetryStore, filter: Parameters<TelemetryStore['logs']>[0]) =>
  (await store.logs(filter, { limit: 100, offset: 0 })).items.map(({ message }) => message);

describe('log records', () => {
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
    expect((await store.logsAfter({ search }, 0, 10)).map(({ record }) => record.message)).toEqual(expected);
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
    expect((await store.logsAfter({ tenantId: 'acme' }, 0, 10)).map(({ id }) => id)).toEqual([2, 4]);
  });
});

describe('analytics events', () => {
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
});

describe('retention', () => {
  async function pruneAll(store: TelemetryStore, limits: Partial<Parameters<TelemetryStore['prune']>[0]>) {
    let calls = 0;
    while (await store.prune({ logsBefore: 0, eventsBefore: 0, maxBytes: 1e9, ...limits })) calls++;
    return calls;
  }

  test('old records are deleted in chunks, also from the search index', async () => {
    const store = await open();
    for (let n = 0; n < 5; n++) {
      await append(
        store,
        Array.from({ length: 1000 }, (_, i) => log({ time: NOON + n * 1000 + i, message: `word${n}` })),
      );
    }
    expect(await pruneAll(store, { logsBefore: NOON + 4000 })).toBeGreaterThan(1);
    expect((await store.logs({}, { limit: 1, offset: 0 })).total).toBe(1000);
    expect((await store.logs({ search: 'word1' }, { limit: 1, offset: 0 })).total).toBe(0);
    expect((await store.logs({ search: 'word4' }, { limit: 1, offset: 0 })).total).toBe(1000);
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
});

describe('ingest', () => {
  const NONE = { perSecond: 0, atOnce: 0 };
  function start(rates = { perSecond: 10, atOnce: 5 }, sharedRates = NONE) {
    const clock = manualClock(NOON);
    return { clock, ingest: new Ingest({ now: clock.now, rates, sharedRates }) };
  }
  const line = (level: string, message: string) => `${JSON.stringify({ level, time: 1, message })}\n`;

  test('a service above its rate loses ordinary lines, but no warnings and no lines of others', () => {
    const { clock, ingest } = start();
    for (let n = 0; n < 20; n++) ingest.take('gateway', line('info', 'noise'));
    ingest.take('gateway', line('error', 'bad'));
    ingest.take('rest', line('info', 'quiet'));
    const batch = ingest.batch()!;
    expect(batch.logs.map(({ message }) => message)).toEqual([...Array(5).fill('noise'), 'bad', 'quiet']);
    expect(batch.counts).toEqual({ 'logs.kept': 7, 'logs.dropped': 15 });
    expect(ingest.batch()).toBeUndefined();
    clock.advance(200);
    for (let n = 0; n < 5; n++) ingest.take('gateway', line('info', 'later'));
    expect(ingest.batch()!.logs).toHaveLength(2);
  });

  test('events above the rate are counted, but not stored', () => {
    const { ingest } = start();
    const text = `${EVENT_LINE}"id":"1","type":"x","ts":"2030-01-01T00:00:00.000Z","source":{"product":"svc","version":"1"},"runId":"r","ctx":{"tenantId":"acme","count":3}}\n`;
    for (let n = 0; n < 7; n++) ingest.take('rest', text);
    const { events, counts } = ingest.batch()!;
    expect(events.map(({ keep }) => keep)).toEqual([true, true, true, true, true, false, false]);
    expect(events[0]).toMatchObject({ tenantId: 'acme', occurrences: 3, ingestTs: NOON });
    expect(counts).toEqual({ 'events.kept': 5, 'events.counted': 2 });
  });

  test('unused shares of the common rate are available to any service', () => {
    const { clock, ingest } = start(undefined, { perSecond: 100, atOnce: 20 });
    for (let n = 0; n < 40; n++) ingest.take('gateway', line('info', 'noise'));
    expect(ingest.batch()!.counts).toEqual({ 'logs.kept': 25, 'logs.dropped': 15 });
    clock.advance(100);
    for (let n = 0; n < 40; n++) ingest.take('rest', line('info', 'noise'));
    expect(ingest.batch()!.counts).toEqual({ 'logs.kept': 15, 'logs.dropped': 25 });
  });

  test('dropped records are counted by minute, service and tenant, and results state their number', async () => {
    const { clock, ingest } = start({ perSecond: 1, atOnce: 1 });
    const of = (tenantId: string, message = 'm') =>
      `${JSON.stringify({ level: 'info', time: 1, tenantId, message })}\n`;
    const tricky = '"tenantId":"other"';
    for (const each of [of('acme'), of('acme'), of('acme', tricky), of('other'), line('info', tricky)])
      ingest.take('rest', each);
    const event = `${EVENT_LINE}"id":"1","type":"x","ts":"2030-01-01T00:00:00.000Z","source":{"product":"svc","version":"1"},"runId":"r","ctx":{"tenantId":"acme"}}\n`;
    for (let n = 0; n < 4; n++) ingest.take('gateway', event);
    ingest.lost('gateway', 6);
    const store = await open();
    await store.append(ingest.batch()!);
    clock.advance(minutes(5));
    for (let n = 0; n < 3; n++) ingest.take('rest', of('acme'));
    await store.append(ingest.batch()!);
    const dropped = async (filter: LogFilter) => (await store.logs(filter, { limit: 1, offset: 0 })).dropped;
    expect(await dropped({})).toEqual({ logs: 12, events: 3, unattributed: 6 });
    // A tenant cannot be told that nothing of its own is missing while nobody knows whose those lines were.
    expect(await dropped({ tenantId: 'acme' })).toEqual({ logs: 4, events: 3, unattributed: 6 });
    expect(await dropped({ tenantId: 'other' })).toEqual({ logs: 1, events: 0, unattributed: 6 });
    expect(await dropped({ tenantId: 'other', services: ['rest'] })).toEqual({
      logs: 1,
      events: 0,
      unattributed: 0,
    });
    expect(await dropped({ services: ['gateway'] })).toEqual({ logs: 6, events: 3, unattributed: 6 });
    expect(await dropped({ to: NOON + minutes(1) })).toEqual({ logs: 10, events: 3, unattributed: 6 });
    expect(await dropped({ from: NOON + minutes(5) })).toEqual({ logs: 2, events: 0, unattributed: 0 });
    const limits = {
      logsBefore: NOON + minutes(2),
      eventsBefore: NOON + minutes(2),
      maxBytes: 1e9,
    };
    while (await store.prune(limits));
    expect(await dropped({})).toEqual({ logs: 2, events: 0, unattributed: 0 });
  });

  test('dropped lines of more tenants than are counted separately count for an unknown tenant', () => {
    const { ingest } = start({ perSecond: 1, atOnce: 1 });
    const of = (tenantId: string) =>
      `${JSON.stringify({ level: 'info', time: 1, tenantId, message: 'm' })}\n`;
    for (let n = 0; n < 1100; n++) ingest.take('rest', of(`t${n}`));
    for (let n = 0; n < 5; n++) ingest.take('rest', of('t1'));
    const { dropped } = ingest.batch()!;
    expect(dropped.filter(({ tenantId }) => tenantId === null)).toMatchObject([{ kind: 'logs', count: 99 }]);
    expect(dropped.find(({ tenantId }) => tenantId === 't1')).toMatchObject({ count: 6 });
    expect(dropped).toHaveLength(1001);
  });

  test('a line that is not a record becomes a message, and fields of wrong types are tolerated', () => {
    const { ingest } = start();
    ingest.take(
      'rest',
      'FATAL ERROR: heap\n{"level":7,"time":"x","message":"odd","meta":[1],"requestId":{}}\n[1]\n\n',
    );
    expect(ingest.batch()!.logs).toEqual([
      expect.objectContaining({ serviceId: 'rest', message: 'FATAL ERROR: heap', layer: 'process' }),
      {
        level: 'info',
        time: NOON,
        serviceId: 'rest',
        logsSource: 'platform',
        layer: 'service',
        message: 'odd',
      },
      expect.objectContaining({ message: '[1]' }),
    ]);
  });
});

describe('threads', () => {
  test('the reader finds what the writer stored, and both threads end on close', async () => {
    const dataDir = await tempDir();
    const dropped: unknown[] = [];
    const writer = startTelemetryWriter({
      dataDir,
      retention: RETENTION,
      onDropped: (...args) => dropped.push(args),
    });
    const reader = createTelemetryReader({ dataDir, clock: manualClock() });
    onTestFinished(() => reader.close());
    const time = Date.now();
    for (let n = 0; n < 50; n++) {
      writer.push('gateway', Buffer.from(`${JSON.stringify(log({ message: `line ${n}`, time }))}\n`));
    }
    await writer.flush();
    expect((await reader.logs({ search: 'line' }, { limit: 3, offset: 0 })).total).toBe(50);
    expect(await reader.counts()).toEqual({ 'logs.kept': 50 });
    await writer.close();
    writer.push('gateway', Buffer.from('{}\n'));
    await writer.flush();
    expect(dropped).toEqual([]);
  });

  test('the writer and the reader report a file that cannot be used', async () => {
    const dataDir = await tempDir();
    const { writeFile } = await import('node:fs/promises');
    await writeFile(`${dataDir}/telemetry.db`, 'this is no database, whatever its name says'.repeat(100));
    const told = Promise.withResolvers<unknown[]>();
    const writer = startTelemetryWriter({
      dataDir,
      retention: RETENTION,
      onDropped: (...args) => told.resolve(args),
    });
    onTestFinished(() => writer.close());
    expect(await told.promise).toEqual([1, expect.stringContaining('telemetry.db')]);
    const reader = createTelemetryReader({ dataDir, clock: manualClock() });
    onTestFinished(() => reader.close());
    await expect(reader.stats({})).rejects.toMatchObject({ code: 'STORE_ERROR' });
  });

  test.runIf(process.platform === 'linux')(
    'the writer lowers its priority, but keeps a lower one of the platform',
    async () => {
      const program = fileURLToPath(new URL('../programs/keep-records.ts', import.meta.url));
      const threadsUnder = async (niceness: number): Promise<Set<number>> => {
        const command = ['-n', String(niceness), process.execPath, program, await tempDir()];
        const { stdout } = await promisify(execFile)('nice', command);
        return new Set(stdout.split(' ').map(Number));
      };
      const own = getPriority();
      expect(await threadsUnder(0)).toEqual(new Set([own, Math.max(own, 10)]));
      expect(await threadsUnder(15)).toEqual(new Set([Math.min(own + 15, 19)]));
    },
  );
});
