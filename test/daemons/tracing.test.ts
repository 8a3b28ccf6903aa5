import { join } from 'node:path';
import { expect, test } from 'vitest';
import { gateway } from '../../src/daemons/gateway/index.ts';
import { createPeers } from '../../src/daemons/peers.ts';
import { rest } from '../../src/daemons/rest/index.ts';
import { state } from '../../src/daemons/state/index.ts';
import { otlpTarget } from '../../src/kit/telemetry/tracer.ts';
import { manualClock } from '../../src/kit/time/clock.ts';
import { startTestDaemon, tempDir } from '../support/daemon.ts';
import { startOtlpReceiver } from '../support/otlp.ts';

const PROJECT = join(import.meta.dirname, '../fixtures/projects/telemetry');
const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736';
const CALLER_SPAN = '00f067aa0ba902b7';
const TOKEN = 'a-token-of-this-test';

/** Gateway, REST and state as one platform, all exporting to one receiver. */
async function start(options: { answer?: number } = {}) {
  const receiver = await startOtlpReceiver();
  receiver.answer(options.answer ?? 200);
  const otlp = otlpTarget({
    OTEL_EXPORTER_OTLP_ENDPOINT: `${receiver.endpoint}/`,
    OTEL_EXPORTER_OTLP_HEADERS: 'x-key=a%20key, x-other=1',
  })!;
  const clock = manualClock();
  const shared = { otlp, clock, projectDir: PROJECT };
  const kept = await startTestDaemon(state, shared);
  const api = await startTestDaemon(rest, { ...shared, peers: createPeers({ state: kept.url }) });
  const front = await startTestDaemon(gateway, {
    ...shared,
    projectDir: await tempDir(),
    peers: createPeers({ rest: api.url }),
    config: { gateway: { staticTokens: { [TOKEN]: { hostId: 'ci', namespaceId: 'acme' } } } },
  });
  const call = (path: string, init: RequestInit = {}) =>
    front.fetch(path, {
      ...init,
      headers: {
        authorization: `Bearer ${TOKEN}`,
        traceparent: `00-${TRACE}-${CALLER_SPAN}-01`,
        ...init.headers,
      },
    });
  return { receiver, clock, kept, api, front, call };
}

test('one trace from the caller through the gateway, the REST API and a handler to the state service', async () => {
  const { receiver, clock, kept, api, front, call } = await start();
  const response = await call('/api/v1/plugins/teller/remember', { headers: { 'x-request-id': 'req-1' } });
  expect([response.status, await response.json()]).toEqual([200, { traceId: TRACE }]);
  clock.advance(1000);
  await expect.poll(() => receiver.spans.length).toBe(4);

  const span = (service: string, kind: number) =>
    receiver.spans.find((one) => one.service === service && one.kind === kind)!;
  const [atGateway, atRest, handler, atState] = [
    span('svc-gateway', 2),
    span('svc-rest', 2),
    span('svc-rest', 1),
    span('svc-state', 2),
  ];
  expect(receiver.spans.map(({ traceId }) => traceId)).toEqual(Array(4).fill(TRACE));
  expect([atGateway.parentSpanId, atRest.parentSpanId, handler.parentSpanId, atState.parentSpanId]).toEqual([
    CALLER_SPAN,
    atGateway.spanId,
    atRest.spanId,
    handler.spanId,
  ]);
  expect(new Set(receiver.spans.map(({ spanId }) => spanId)).size).toBe(4);
  expect(handler).toMatchObject({
    name: '@acme/teller GET /remember',
    attributes: { 'svc.plugin_id': '@acme/teller', 'svc.tenant_id': 'acme', 'svc.request_id': 'req-1' },
  });
  expect(atRest).toMatchObject({
    name: 'GET /api/v1/plugins/teller/remember',
    attributes: { 'http.route': '/api/v1/plugins/teller/remember', 'http.response.status_code': '200' },
  });
  expect(BigInt(atRest.endTimeUnixNano)).toBeGreaterThanOrEqual(BigInt(atRest.startTimeUnixNano));
  expect(receiver.headers[0]).toMatchObject({ 'x-key': 'a key', 'x-other': '1' });

  // The log tells the same spans.
  const lineOf = (daemon: { logs: { lines: Array<Record<string, unknown>> } }, message: string) =>
    daemon.logs.lines.find((line) => line.message === message);
  expect(lineOf(api, 'remembering')).toMatchObject({ traceId: TRACE, spanId: handler.spanId });
  expect(lineOf(api, 'GET /api/v1/plugins/teller/remember 200')).toMatchObject({ spanId: atRest.spanId });
  expect(lineOf(front, 'GET /api/v1/* 200')).toMatchObject({ spanId: atGateway.spanId });
  expect(kept.logs.lines.at(-1)).toMatchObject({ traceId: TRACE, spanId: atState.spanId });
});

test('a failed handler is a failed span', async () => {
  const { receiver, clock, call } = await start();
  expect((await call('/api/v1/plugins/teller/throw', { method: 'POST' })).status).toBe(500);
  clock.advance(1000);
  await expect.poll(() => receiver.spans.length).toBe(3);
  expect(receiver.spans.map(({ status }) => status)).toEqual(Array(3).fill({ code: 2 }));
});

test('a collector that refuses is logged once, and has no other effect', async () => {
  const { receiver, clock, api, call } = await start({ answer: 503 });
  for (let n = 0; n < 3; n++) {
    expect((await call('/api/v1/plugins/teller/remember')).status).toBe(200);
    clock.advance(1000);
    await expect.poll(() => receiver.headers.length).toBeGreaterThan(3 * n + 2);
  }
  await expect
    .poll(() => api.logs.lines.filter(({ reasonCode }) => reasonCode === 'TRACES_DROPPED'))
    .toMatchObject([{ level: 'warn', outcome: 'degraded', evidence: { endpoint: receiver.endpoint } }]);
});

test('pending spans are sent when a daemon ends', async () => {
  const { receiver, api, call } = await start();
  await call('/api/v1/plugins/teller/remember');
  await api.close();
  expect(receiver.spans.map(({ service }) => service)).toEqual(['svc-rest', 'svc-rest']);
});

test('without an endpoint there is no exporter', () => {
  expect(otlpTarget({})).toBeUndefined();
  expect(otlpTarget({ OTEL_EXPORTER_OTLP_ENDPOINT: '' })).toBeUndefined();
});
