import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { dailyEventStats, eventStats, listEvents, queryLogs } from '../../../src/contracts/index.ts';
import { days } from '../../../src/kit/time/duration.ts';
import { append, keptEvent, logRecord, NOON, openTelemetry } from '../../support/telemetry.ts';
import { asCaller, readRecords as read, send, startRest } from './support.ts';

async function start() {
  const rest = await startRest();
  const store = await openTelemetry(rest.dataDir);
  return { rest, store };
}

test('logs are filtered, and paged by position', async () => {
  const { rest, store } = await start();
  await append(store, [
    logRecord({ message: 'first', tenantId: 'acme' }),
    logRecord({ message: 'second', tenantId: 'acme', level: 'error', time: NOON + 1, meta: { a: 1 } }),
    logRecord({ message: 'third', tenantId: 'acme', time: NOON + 2 }),
  ]);
  const query = (query: object) => rest.call(queryLogs, { query }, 'acme');
  expect(await query({ level: 'error' })).toEqual({
    items: [expect.objectContaining({ message: 'second', meta: { a: 1 } })],
    total: 1,
    dropped: { logs: 0, events: 0, unattributed: 0 },
    limit: 100,
    offset: 0,
  });
  expect(await query({ limit: 1, offset: 1 })).toMatchObject({
    items: [{ message: 'second' }],
    total: 3,
    limit: 1,
    offset: 1,
  });
  const iso = new Date(NOON + 1).toISOString();
  expect((await query({ from: iso, to: String(NOON + 2) })).items).toHaveLength(1);
  expect((await query({ service: 'rest,gateway', search: 'thir' })).total).toBe(1);
  await expect(query({ from: 'yesterday' })).rejects.toMatchObject({ code: 'VALIDATION_ERROR' });
});

test('callers see their own namespace, administrators all namespaces and records without one', async () => {
  const { rest, store } = await start();
  await append(
    store,
    [logRecord({ tenantId: 'acme' }), logRecord({ tenantId: 'other' }), logRecord()],
    [keptEvent(NOON), keptEvent(NOON, { tenantId: 'other' }), keptEvent(NOON, { tenantId: null })],
  );
  const totals = async (headers: Record<string, string>, query = '') => {
    const counts: unknown[] = [];
    for (const path of ['logs', 'analytics/events', 'analytics/stats']) {
      const { status, body } = await send(rest, 'GET', `/api/v1/${path}${query}`, { headers });
      counts.push(status === 200 ? (body as { total: number }).total : status);
    }
    return counts;
  };
  expect(await totals(asCaller('ci', 'acme'))).toEqual([1, 1, 1]);
  expect(await totals(asCaller('ci', 'acme'), '?tenantId=acme')).toEqual([1, 1, 1]);
  expect(await totals(asCaller('ci', 'acme'), '?tenantId=other')).toEqual([403, 403, 403]);
  expect(await totals(asCaller('operator'))).toEqual([3, 3, 3]);
  expect(await totals(asCaller('operator'), '?tenantId=other')).toEqual([1, 1, 1]);
  // Whoever reaches the port itself cannot call itself the operator.
  expect(await totals({ 'x-svc-host-id': 'operator' })).toEqual([0, 0, 0]);
});

test('analytics: the list, the totals and the days', async () => {
  const { rest, store } = await start();
  await append(
    store,
    [],
    [keptEvent(NOON), keptEvent(NOON, { type: 'cache.hit', occurrences: 5 }), keptEvent(NOON + days(1))],
  );
  const { items } = await rest.call(listEvents, { query: { type: 'cache.hit' } }, 'acme');
  expect(items).toMatchObject([{ type: 'cache.hit', schema: 'svc.v1', source: { product: 'svc' } }]);
  expect(await rest.call(eventStats, { query: {} }, 'acme')).toEqual({
    total: 7,
    byType: { 'plugin.command.completed': 2, 'cache.hit': 5 },
    bySource: { svc: 7 },
    byActor: {},
  });
  const expected = [
    { date: '2030-01-02', total: 6, byType: { 'plugin.command.completed': 1, 'cache.hit': 5 } },
    { date: '2030-01-03', total: 1, byType: { 'plugin.command.completed': 1 } },
  ];
  expect((await rest.call(dailyEventStats, { query: {} }, 'acme')).items).toEqual(expected);
  const alias = await send(rest, 'GET', '/api/v1/analytics/stats/daily', { headers: asCaller('ci', 'acme') });
  expect(alias.body).toEqual({ items: expected });
});

test('follow streams the latest and each new record, and resumes where a lost connection ended', async () => {
  const { rest, store } = await start();
  const follow = (query: string, headers: Record<string, string> = {}) =>
    rest.fetch(`/api/v1/logs?follow=1${query}`, { headers: { ...asCaller('ci', 'acme'), ...headers } });
  const say = (message: string, tenantId = 'acme') => append(store, [logRecord({ message, tenantId })]);
  await say('a');
  await say('b');
  await say('c');

  const response = await follow('&limit=2');
  expect(response.headers.get('content-type')).toBe('text/event-stream; charset=utf-8');
  const reading = read(response, 3);
  await sleep(50);
  await say('not ours', 'other');
  await say('d');
  const events = await reading;
  expect(events.map(({ message }) => message)).toEqual(['b', 'c', 'd']);

  await say('e');
  const resumed = await follow('', { 'last-event-id': events[1]!.id });
  expect((await read(resumed, 2)).map(({ message }) => message)).toEqual(['d', 'e']);
  const named = await follow(`&after=${events[2]!.id}`);
  expect((await read(named, 1)).map(({ message }) => message)).toEqual(['e']);
  await expect
    .poll(() => rest.logs.lines.filter(({ message }) => message === 'GET /api/v1/logs 200').length)
    .toBe(3);
});

test('events are followed likewise, filtered by type', async () => {
  const { rest, store } = await start();
  const path = '/api/v1/analytics/events?follow=1&type=order.paid';
  const follow = (query: string) => rest.fetch(path + query, { headers: asCaller('ci', 'acme') });
  const tell = (...fields: Array<Parameters<typeof keptEvent>[1]>) =>
    append(
      store,
      [],
      fields.map((one) => keptEvent(NOON, { type: 'order.paid', ...one })),
    );
  await tell({}, {}, { type: 'order.sent' });
  const reading = read(await follow('&limit=1'), 3);
  await sleep(50);
  await tell({ tenantId: 'other' }, { type: 'order.sent' }, {}, {});
  const events = await reading;
  expect(events.map(({ type }) => type)).toEqual(Array(3).fill('order.paid'));
  expect(new Set(events.map(({ id }) => id)).size).toBe(3);
  const resumed = await read(await follow(`&after=${events[0]!.id}`), 2);
  expect(resumed.map(({ id }) => id)).toEqual(events.slice(1).map(({ id }) => id));
});

test('a stream ends with the daemon, and does not delay it', async () => {
  const { rest, store } = await start();
  await append(store, [logRecord({ message: 'a', tenantId: 'acme' })]);
  const response = await rest.fetch('/api/v1/logs?follow=1', { headers: asCaller('ci', 'acme') });
  const reading = read(response, 99);
  await sleep(100);
  const startedAt = performance.now();
  await rest.close();
  expect(performance.now() - startedAt).toBeLessThan(5000);
  expect(await reading).toHaveLength(1);
});

test('kept and dropped records are counted in a metric', async () => {
  const { rest, store } = await start();
  await store.append({ logs: [], events: [], counts: { 'logs.kept': 3, 'logs.dropped': 2 } });
  const text = await (await rest.fetch('/metrics')).text();
  expect(text).toContain('svc_telemetry_records_total{service="rest",kind="logs",outcome="dropped"} 2');
  expect(text).toContain('svc_telemetry_records_total{service="rest",kind="logs",outcome="kept"} 3');
});

test('a result states how many records of the caller were dropped', async () => {
  const { rest, store } = await start();
  const dropped = { kind: 'logs', service: 'rest', minute: NOON, count: 4 } as const;
  await store.append({ logs: [], events: [], counts: {}, dropped: [{ ...dropped, tenantId: 'acme' }] });
  await store.append({ logs: [], events: [], counts: {}, dropped: [{ ...dropped, tenantId: 'other' }] });
  const unknown = { ...dropped, count: 3, tenantId: null };
  await store.append({ logs: [], events: [], counts: {}, dropped: [unknown] });
  const page = await rest.call(queryLogs, { query: {} }, 'acme');
  expect(page.dropped).toEqual({ logs: 4, events: 0, unattributed: 3 });
});

test('every refused direct call is a diagnostic', async () => {
  const rest = await startRest({ config: { auth: { mode: 'required' } } });
  expect((await rest.fetch('/api/v1/logs')).status).toBe(401);
  expect((await rest.fetch('/api/v1/logs', { headers: { 'x-svc-service-key': 'guess' } })).status).toBe(401);
  expect(rest.logs.lines.filter(({ event }) => event === 'auth.failed')).toMatchObject(
    ['SERVICE_KEY_MISSING', 'SERVICE_KEY_WRONG'].map((reasonCode) => ({
      domain: 'auth',
      level: 'warn',
      reasonCode,
      outcome: 'refused',
      serviceId: 'rest',
      requestId: expect.any(String),
      evidence: { ip: '127.0.0.1' },
    })),
  );
});
