import { expect, test } from 'vitest';
import { exportRun, exportRunSpans, type RunId } from '../../../src/contracts/index.ts';
import { derivedSpanId } from '../../../src/kit/telemetry/trace.ts';
import { otlpTarget } from '../../../src/kit/telemetry/tracer.ts';
import { type ReceivedSpan, startOtlpReceiver } from '../../support/otlp.ts';
import { cel, startWorkflow, type TestWorkflow } from './support/workflow.ts';

const CLOSED_PORT = 'http://127.0.0.1:9/';

const started = () => startWorkflow({ config: { workflow: { httpAllow: ['127.0.0.1'] } } });

const RETRIED = {
  steps: [
    {
      id: 'call',
      uses: 'http',
      with: { url: CLOSED_PORT },
      retry: { maxAttempts: 2, initialMs: 1, jitter: 'none' },
    },
    { id: 'after', uses: 'set', with: { a: cel('1 + 1') }, if: 'always()' },
  ],
};

async function failedRun(it: TestWorkflow): Promise<string> {
  const id = await it.start(RETRIED);
  await it.until(id, 'waiting');
  await it.clock.advance(1000);
  await it.until(id, 'failed');
  return id;
}

test('an export has the run, every attempt, the events and the log lines', async () => {
  const it = await started();
  const id = await failedRun(it);
  const exported = await it.call(exportRun, { params: { runId: id as RunId } });
  expect(exported).toMatchObject({ truncated: false, run: { id, status: 'failed' } });
  expect(exported.steps.map((step) => [step.id, step.history.map(({ status }) => status)])).toEqual([
    ['main.call', ['failed', 'failed']],
    ['main.after', ['succeeded']],
  ]);
  expect(exported.events[0]!.type).toBe('run.queued');
  expect(exported.events.at(-1)!.type).toBe('run.failed');
});

test('the spans are the run and every attempt, with the ids of live tracing', async () => {
  const it = await started();
  const id = await failedRun(it);
  const { resourceSpans } = await it.call(exportRunSpans, { params: { runId: id as RunId } });
  const spans = resourceSpans[0]!.scopeSpans[0]!.spans;
  expect(spans.map(({ spanId, name, status }) => [spanId, name, status?.code])).toEqual([
    [derivedSpanId(id), 'workflow test', 2],
    [derivedSpanId(id, 'main.call', 1), 'step main.call', 2],
    [derivedSpanId(id, 'main.call', 2), 'step main.call', 2],
    [derivedSpanId(id, 'main.after', 1), 'step main.after', undefined],
  ]);
  for (const { traceId, parentSpanId, startTimeUnixNano, endTimeUnixNano } of spans.slice(1)) {
    expect(parentSpanId).toBe(derivedSpanId(id));
    expect(traceId).toMatch(/^[0-9a-f]{32}$/);
    expect(BigInt(endTimeUnixNano)).toBeGreaterThanOrEqual(BigInt(startTimeUnixNano));
  }
});

test('exported spans have the lengths and attributes of live tracing, without the time in the queue', async () => {
  const receiver = await startOtlpReceiver();
  const otlp = otlpTarget({ OTEL_EXPORTER_OTLP_ENDPOINT: receiver.endpoint })!;
  const it = await startWorkflow({ otlp, config: { workflow: { httpAllow: ['127.0.0.1'] } } });
  const id = await it.start(RETRIED, { runAt: it.clock.now() + 5000 });
  it.clock.advance(6000);
  await it.services.engine.tick();
  await it.until(id, 'waiting');
  await it.clock.advance(1000);
  await it.until(id, 'failed');
  const { resourceSpans } = await it.call(exportRunSpans, { params: { runId: id as RunId } });
  await it.close();
  const factsOf = (
    span: Pick<ReceivedSpan, 'startTimeUnixNano' | 'endTimeUnixNano'>,
    attributes: object,
  ) => ({
    ...attributes,
    ms: Number(BigInt(span.endTimeUnixNano) - BigInt(span.startTimeUnixNano)) / 1e6,
  });
  const live = new Map(receiver.spans.map((span) => [span.spanId, factsOf(span, span.attributes)]));
  const exported = resourceSpans[0]!.scopeSpans[0]!.spans.map((span) => {
    const attributes = span.attributes.filter(({ key }) => key !== 'svc.error_message');
    const values = attributes.map(({ key, value }) => [key, Object.values(value)[0]]);
    return { id: span.spanId, facts: factsOf(span, Object.fromEntries(values)) };
  });
  expect(exported).toHaveLength(4);
  for (const span of exported) expect(span.facts).toEqual(live.get(span.id));
  expect(exported[0]!.facts.ms).toBeLessThan(3000);
});

test('an attempt that has not ended lasts until the time of the export', async () => {
  const it = await started();
  const id = await it.start({ steps: [{ id: 'hold', uses: 'approval', with: {} }] });
  await it.until(id, 'waiting');
  await it.clock.advance(60_000);
  const { resourceSpans } = await it.call(exportRunSpans, { params: { runId: id as RunId } });
  const hold = resourceSpans[0]!.scopeSpans[0]!.spans[1]!;
  expect(BigInt(hold.endTimeUnixNano) - BigInt(hold.startTimeUnixNano)).toBeGreaterThanOrEqual(
    60_000_000_000n,
  );
  expect(hold.status).toBeUndefined();
});

test('a run of another tenant cannot be exported', async () => {
  const it = await started();
  const id = await it.start({ steps: [{ id: 'a', uses: 'set', with: {} }] });
  for (const endpoint of [exportRun, exportRunSpans])
    await expect(it.call(endpoint, { params: { runId: id as RunId } }, 'other')).rejects.toMatchObject({
      code: 'WORKFLOW_RUN_NOT_FOUND',
    });
});
