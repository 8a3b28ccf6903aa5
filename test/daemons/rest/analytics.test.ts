import { join } from 'node:path';
import { expect, test } from 'vitest';
import { AnalyticsEvent } from '../../../src/contracts/index.ts';
import { createPeers } from '../../../src/daemons/peers.ts';
import { state } from '../../../src/daemons/state/index.ts';
import { version } from '../../../src/kit/files/paths.ts';
import { startTestDaemon } from '../../support/daemon.ts';
import { asCaller, send, startRest, type TestRest } from './support.ts';

const PROJECT = join(import.meta.dirname, '../../fixtures/projects/telemetry');
const PATH = '/api/v1/plugins/teller';

/** The REST daemon with the plugin `@acme/teller`, and the state daemon behind it. */
async function start(): Promise<TestRest> {
  const kept = await startTestDaemon(state);
  return startRest({ projectDir: PROJECT, peers: createPeers({ state: kept.url }) });
}

const SPAN_ID = expect.stringMatching(/^[0-9a-f]{16}$/);
const eventsOf = (rest: TestRest, type: string) => rest.logs.lines.filter((line) => line.type === type);

test('an ended handler is a platform event with the fields of the spec', async () => {
  const rest = await start();
  const headers = { ...asCaller('host_1', 'acme'), 'x-request-id': 'req-1', 'x-trace-id': 'trace-1' };
  await send(rest, 'POST', `${PATH}/tell`, { headers, body: { name: 'x' } });
  const [event] = eventsOf(rest, 'plugin.command.completed');
  expect(event).toEqual({
    schema: 'svc.v1',
    id: expect.any(String),
    type: 'plugin.command.completed',
    ts: new Date(rest.clock.now()).toISOString(),
    source: { product: 'svc', version },
    runId: expect.any(String),
    actor: { type: 'agent', id: 'host_1' },
    ctx: {
      ...{ tenantId: 'acme', host: 'rest', requestId: 'req-1', traceId: 'trace-1' },
      ...{ spanId: SPAN_ID, parentSpanId: SPAN_ID },
    },
    payload: {
      pluginId: '@acme/teller',
      commandId: 'POST /tell',
      durationMs: expect.any(Number),
      exitCode: 0,
    },
  });
  expect(AnalyticsEvent.safeParse({ ...event, ingestTs: event!.ts }).success).toBe(true);
});

test('a failed or throwing handler is an event with its code', async () => {
  const rest = await start();
  const headers = asCaller('ada');
  expect((await send(rest, 'POST', `${PATH}/fail`, { headers })).status).toBe(409);
  expect((await send(rest, 'POST', `${PATH}/throw`, { headers })).status).toBe(500);
  expect(eventsOf(rest, 'plugin.command.failed')).toMatchObject([
    {
      payload: { commandId: 'POST /fail', exitCode: 3 },
      ctx: { code: 'NO' },
      actor: { type: 'user', id: 'ada' },
    },
    { payload: { commandId: 'POST /throw', exitCode: 1 }, ctx: { code: 'EXECUTION_ERROR' } },
  ]);
});

test("a plugin's own event has the plugin as its source; secrets in it are masked", async () => {
  const rest = await start();
  const payload = { amount: 3, token: 'abc', note: 'Bearer abcdefgh' };
  await send(rest, 'POST', `${PATH}/tell`, {
    headers: asCaller('ci', 'acme'),
    body: { name: 'order.paid', payload },
  });
  expect(eventsOf(rest, 'order.paid')).toMatchObject([
    {
      source: { product: '@acme/teller', version: '2.1.0' },
      payload: { amount: 3, token: '[redacted]', note: '[redacted]' },
      ctx: { tenantId: 'acme', host: 'rest' },
    },
  ]);
});

test('an invalid name fails the handler; an oversized payload is logged; a flood is dropped and reported', async () => {
  const rest = await start();
  const tell = (body: object) => send(rest, 'POST', `${PATH}/tell`, { headers: asCaller('ci'), body });
  expect((await tell({ name: 'no spaces' })).status).toBe(500);
  expect((await tell({ name: 'big', payload: 'x'.repeat(17_000) })).status).toBe(200);
  await expect
    .poll(() => rest.logs.lines.map(({ message }) => String(message)))
    .toContainEqual(expect.stringMatching(/^The event "big" was dropped: .*17002 characters/));
  expect(eventsOf(rest, 'big')).toEqual([]);
  for (let n = 0; n < 15; n++) await tell({ name: 'many', times: 100 });
  expect(eventsOf(rest, 'many')).toHaveLength(1000);
  rest.clock.advance(5000);
  expect(rest.logs.lines).toContainEqual(
    expect.objectContaining({ level: 'warn', pluginId: '@acme/teller', meta: { dropped: 500 } }),
  );
});

const told = (rest: TestRest, type: string) =>
  eventsOf(rest, type).map(({ payload, ctx }) => ({ payload, ctx }));
const CACHE = 'plugin:@acme/teller:cache';

test('each cache read is an event of its execution, with namespace and duration', async () => {
  const rest = await start();
  const headers = { ...asCaller('ci', 'acme'), 'x-request-id': 'req-1', 'x-trace-id': 'trace-1' };
  await send(rest, 'GET', `${PATH}/cached`, { headers });
  const ids = { requestId: 'req-1', traceId: 'trace-1', parentSpanId: SPAN_ID };
  const ctx = { tenantId: 'acme', host: 'rest', ...ids };
  const each = { payload: { namespace: CACHE, durationMs: expect.any(Number) }, ctx };
  expect(told(rest, 'cache.hit')).toEqual([each, each]);
  expect(told(rest, 'cache.miss')).toEqual([each]);
});

test('reads beyond the rate are combined in one event with their exact number', async () => {
  const rest = await start();
  const READS = 1100;
  const reads = { headers: asCaller('ci', 'acme'), body: { times: READS } };
  expect((await send(rest, 'POST', `${PATH}/read-cache`, reads)).status).toBe(200);
  expect(told(rest, 'cache.hit')).toHaveLength(1000);
  rest.clock.advance(10_000);
  expect(told(rest, 'cache.hit')).toHaveLength(1001);
  expect(told(rest, 'cache.hit').at(-1)).toEqual({
    payload: { namespace: CACHE, durationMs: expect.any(Number) },
    ctx: { tenantId: 'acme', count: READS - 1000 },
  });
  // Another tenant's budget is its own.
  await send(rest, 'GET', `${PATH}/cached`, { headers: asCaller('ci', 'other') });
  expect(
    told(rest, 'cache.hit').filter(({ ctx }) => (ctx as { tenantId: string }).tenantId === 'other'),
  ).toHaveLength(2);
});
