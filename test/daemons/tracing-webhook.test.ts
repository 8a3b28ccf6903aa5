import { join } from 'node:path';
import { expect, test } from 'vitest';
import { provisionWebhook } from '../../src/contracts/index.ts';
import { gateway } from '../../src/daemons/gateway/index.ts';
import { createPeers } from '../../src/daemons/peers.ts';
import { state } from '../../src/daemons/state/index.ts';
import { workflow } from '../../src/daemons/workflow/index.ts';
import { createClient } from '../../src/http/index.ts';
import { otlpTarget } from '../../src/kit/telemetry/tracer.ts';
import { manualClock } from '../../src/kit/time/clock.ts';
import { startTestDaemon } from '../support/daemon.ts';
import { type ReceivedSpan, startOtlpReceiver } from '../support/otlp.ts';

const PROJECT = join(import.meta.dirname, '../fixtures/projects/trace');
const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736';
const SENDER_SPAN = '00f067aa0ba902b7';
const TOKEN = 'a-token-of-this-test';

/** Gateway, workflow and state service as one platform, all exporting to one receiver. */
async function start() {
  const receiver = await startOtlpReceiver();
  const otlp = otlpTarget({ OTEL_EXPORTER_OTLP_ENDPOINT: receiver.endpoint })!;
  const clock = manualClock();
  const shared = { otlp, clock, projectDir: PROJECT };
  const kept = await startTestDaemon(state, shared);
  const peers = createPeers({ state: kept.url });
  const runs = await startTestDaemon(workflow, { ...shared, peers });
  const front = await startTestDaemon(gateway, {
    ...shared,
    peers: createPeers({ state: kept.url, workflow: runs.url }),
    config: { gateway: { staticTokens: { [TOKEN]: { hostId: 'ci', namespaceId: 'acme' } } } },
  });
  const headers = () => ({ authorization: `Bearer ${TOKEN}` });
  const client = createClient({ url: front.url, peer: 'gateway', headers });
  receiver.spans.length = 0;

  async function deliver(event: string): Promise<number> {
    const body = { pluginId: 'relay', event } as never;
    const { secret } = await client.call(provisionWebhook, { body });
    const { status } = await front.fetch(`/webhooks/relay/${event}`, {
      method: 'POST',
      headers: {
        'x-svc-namespace': 'acme',
        'x-token': secret,
        'content-type': 'application/json',
        traceparent: `00-${TRACE}-${SENDER_SPAN}-01`,
      },
      body: '{"ref":"main"}',
    });
    return status;
  }
  /** The spans of the sender's trace, by what they are of, once all are there. */
  async function traced(count: number): Promise<Map<string, ReceivedSpan>> {
    const own = () => receiver.spans.filter(({ traceId }) => traceId === TRACE);
    const come = () => {
      clock.advance(1000);
      return own().length;
    };
    await expect.poll(come, { timeout: 20_000, interval: 100 }).toBe(count);
    return new Map(own().map((span) => [`${span.service.slice('svc-'.length)}: ${span.name}`, span]));
  }
  return { deliver, traced };
}

test.each([
  ['a synchronous webhook', 'pushed', 200],
  ['an asynchronous one, whose answer is given before anything runs', 'queued', 202],
])('one trace over all hops of %s that starts a workflow', { timeout: 40_000 }, async (_, event, status) => {
  const { deliver, traced } = await start();
  expect(await deliver(event)).toBe(status);
  const spans = await traced(7);

  // Each hop, and the one that caused it.
  const hops = [
    ['gateway: POST /webhooks/:pluginId/:event', undefined],
    [`gateway: relay ${event}`, 'gateway: POST /webhooks/:pluginId/:event'],
    ['workflow: POST /internal/workflows/deliveries', 'gateway: POST /webhooks/:pluginId/:event'],
    ['workflow: workflow on-push', 'workflow: POST /internal/workflows/deliveries'],
    ['workflow: step only.note', 'workflow: workflow on-push'],
    ['workflow: relay note', 'workflow: step only.note'],
    ['state: PUT /api/v1/state/:namespace/:key', 'workflow: relay note'],
  ] as const;
  expect([...spans.keys()].sort()).toEqual(hops.map(([name]) => name).sort());
  for (const [name, parent] of hops) {
    const expected = parent === undefined ? SENDER_SPAN : spans.get(parent)!.spanId;
    expect([name, spans.get(name)!.parentSpanId]).toEqual([name, expected]);
  }
  expect(new Set([...spans.values()].map(({ spanId }) => spanId)).size).toBe(hops.length);
});
