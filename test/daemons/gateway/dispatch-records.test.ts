import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { GatewayServices } from '../../../src/daemons/gateway/services.ts';
import { createPeers } from '../../../src/daemons/peers.ts';
import { serviceHeaders } from '../../../src/http/index.ts';
import { otlpTarget } from '../../../src/kit/telemetry/tracer.ts';
import { startTestAgent } from '../../agent/support.ts';
import { TEST_KEYS } from '../../support/daemon.ts';
import { ADMIN_TOKEN, startGateway } from '../../support/gateway.ts';
import { startOtlpReceiver } from '../../support/otlp.ts';
import { startRest } from '../rest/support.ts';

/** Events, metrics and spans of executions that come in through the internal dispatch. */
const PROJECT = join(import.meta.dirname, '../../fixtures/projects/hosts');
const SECRET = { 'x-internal-secret': TEST_KEYS.internalSecret };
const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736';
const CALLER_SPAN = '00f067aa0ba902b7';
const ON_HOSTS = { execution: { plugins: { '@acme/tools': { backend: 'host' } } } };

async function start(config: Record<string, unknown> = {}, peers = createPeers()) {
  const receiver = await startOtlpReceiver();
  const otlp = otlpTarget({ OTEL_EXPORTER_OTLP_ENDPOINT: receiver.endpoint })!;
  const gateway = await startGateway({ projectDir: PROJECT, otlp, peers, config });
  return { gateway, receiver, otlp };
}

type Started = Awaited<ReturnType<typeof start>>;

async function dispatch(
  { gateway }: Pick<Started, 'gateway'>,
  handler: string,
  headers: Record<string, string>,
): Promise<number> {
  const response = await gateway.fetch('/internal/dispatch', {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      traceparent: `00-${TRACE}-${CALLER_SPAN}-01`,
      ...headers,
    },
    body: JSON.stringify({
      plugin: { id: '@acme/tools' },
      handler: `handlers.js#${handler}`,
      executionId: `e-${handler}`,
    }),
  });
  return response.status;
}

const eventsOf = ({ logs }: { logs: { lines: Array<Record<string, unknown>> } }) =>
  logs.lines.filter(({ type }) => String(type).startsWith('plugin.command.'));

const executionsOf = async ({ gateway }: Pick<Started, 'gateway'>) =>
  (await (await gateway.fetch('/metrics')).text())
    .split('\n')
    .filter((line) => line.startsWith('svc_plugin_executions_total{'));

/** The spans of handlers, once all services have exported theirs. */
async function handlerSpans({ gateway, receiver }: Started) {
  gateway.clock.advance(1000);
  const ofHandlers = () => receiver.spans.filter(({ kind }) => kind === 1);
  await expect.poll(() => receiver.spans.some(({ name }) => name === 'POST /internal/dispatch')).toBe(true);
  await expect.poll(() => ofHandlers().length).toBeGreaterThan(0);
  return ofHandlers();
}

test('an execution of an external caller yields an event, a count and a span', async () => {
  const it = await start();
  expect(await dispatch(it, 'echo', SECRET)).toBe(200);
  expect(await dispatch(it, 'fail', SECRET)).toBe(500);

  expect(eventsOf(it.gateway)).toMatchObject([
    {
      type: 'plugin.command.completed',
      runId: 'e-echo',
      payload: { pluginId: '@acme/tools', commandId: 'echo', durationMs: expect.any(Number), exitCode: 0 },
      ctx: { tenantId: 'default', traceId: TRACE },
    },
    { type: 'plugin.command.failed', payload: { commandId: 'fail', exitCode: 1 } },
  ]);
  expect(await executionsOf(it)).toEqual([
    expect.stringMatching(/host="cli",outcome="succeeded"\} 1$/),
    expect.stringMatching(/host="cli",outcome="failed"\} 1$/),
  ]);
  const spans = await handlerSpans(it);
  const server = it.receiver.spans.find(({ kind }) => kind === 2)!;
  expect(server).toMatchObject({ traceId: TRACE, parentSpanId: CALLER_SPAN });
  expect(spans[0]).toMatchObject({
    name: '@acme/tools echo',
    traceId: TRACE,
    parentSpanId: server.spanId,
    attributes: { 'svc.execution_id': 'e-echo' },
  });
  expect(spans[1]).toMatchObject({ name: '@acme/tools fail', status: { code: 2 } });
});

test('an execution requested by a container is recorded for its namespace', async () => {
  const it = await start();
  const { credentials } = it.gateway.services as GatewayServices;
  const pass = await credentials.issue({ executionId: 'e-1', tenantId: 'acme', timeoutMs: 60_000 } as never);
  const headers = { 'x-internal-secret': pass.internalSecret, authorization: `Bearer ${pass.token}` };
  expect(await dispatch(it, 'echo', headers)).toBe(200);
  // The service key is not a container's to show.
  const posing = { ...headers, ...serviceHeaders(TEST_KEYS.internalSecret) };
  expect(await dispatch(it, 'about', posing)).toBe(200);
  expect(eventsOf(it.gateway)).toMatchObject([
    { type: 'plugin.command.completed', ctx: { tenantId: 'acme' }, payload: { commandId: 'echo' } },
    { type: 'plugin.command.completed', ctx: { tenantId: 'acme' }, payload: { commandId: 'about' } },
  ]);
  expect(await handlerSpans(it)).toHaveLength(2);
});

test('an execution sent by another service is recorded once, by that service, in one trace', async () => {
  const peers = createPeers();
  const it = await start(ON_HOSTS, peers);
  const { gateway, receiver, otlp } = it;
  const rest = await startRest({ projectDir: PROJECT, peers, config: ON_HOSTS, otlp, clock: gateway.clock });
  peers.set({ gateway: gateway.url, rest: rest.url });
  await startTestAgent(gateway);
  const reply = await gateway.fetch('/api/v1/plugins/tools/echo', {
    method: 'POST',
    headers: { authorization: `Bearer ${ADMIN_TOKEN}`, 'content-type': 'application/json' },
    body: '{"a":1}',
  });
  expect([reply.status, await reply.json()]).toEqual([200, { a: 1 }]);

  expect([eventsOf(rest).length, eventsOf(gateway).length, await executionsOf(it)]).toEqual([1, 0, []]);
  const [handler, ...others] = await handlerSpans(it);
  expect(others).toEqual([]);
  expect(handler).toMatchObject({ service: 'svc-rest', name: '@acme/tools POST /echo' });
  expect(receiver.spans.find(({ name }) => name === 'POST /internal/dispatch')).toMatchObject({
    traceId: handler!.traceId,
    parentSpanId: handler!.spanId,
  });
});
