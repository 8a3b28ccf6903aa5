import { messageOf } from '../errors/errors.ts';
import { version } from '../files/paths.ts';
import type { Clock } from '../time/clock.ts';
import { seconds } from '../time/duration.ts';
import type { Logger } from './logger.ts';
import { w3cTraceId } from './trace.ts';
import type { EndedSpan, OtlpTarget, Tracer } from './tracer.ts';

/** Exports spans as OTLP over HTTP with JSON, which every collector accepts. Loaded only if an endpoint is set. */

const SEND_EVERY_MS = seconds(1);
const MAX_BATCH_SPANS = 512;
/** Spans queued for the collector; further ones are dropped. */
const MAX_QUEUED_SPANS = 4096;
const TIMEOUT_MS = seconds(5);
const KINDS = { internal: 1, server: 2 } as const;
const FAILED = 2;

export interface OtlpTracerOptions extends OtlpTarget {
  service: string;
  clock: Clock;
  logger: Logger;
}

interface QueuedSpan {
  span: EndedSpan;
  /** Epoch ms. */
  endedAt: number;
}

/** Sends queued spans once a second. Spans that cannot be sent are dropped, with one warning per outage. */
export function createOtlpTracer(options: OtlpTracerOptions): Tracer {
  const { endpoint, clock, logger } = options;
  const queue: QueuedSpan[] = [];
  let scheduled = false;
  let dropped = 0;
  let hasWarned = false;
  let sending: Promise<void> = Promise.resolve();

  function flush(): Promise<void> {
    while (queue.length > 0) {
      const batch = queue.splice(0, MAX_BATCH_SPANS);
      sending = sending.then(() => post(batch));
    }
    return sending;
  }
  async function post(batch: QueuedSpan[]): Promise<void> {
    try {
      const response = await fetch(`${endpoint}/v1/traces`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', ...options.headers },
        body: JSON.stringify(otlpRequest(batch, options.service)),
        signal: AbortSignal.timeout(TIMEOUT_MS),
      });
      await response.arrayBuffer();
      if (!response.ok) throw new Error(`the collector answered ${response.status}`);
      hasWarned = false;
    } catch (error) {
      reportDropped(batch.length, error);
    }
  }
  function reportDropped(count: number, error: unknown): void {
    dropped += count;
    if (hasWarned) return;
    hasWarned = true;
    logger.diagnostic({
      domain: 'tracing',
      event: 'tracing.export_failed',
      level: 'warn',
      reasonCode: 'TRACES_DROPPED',
      message: `Spans cannot be sent to ${endpoint} and are dropped until the collector accepts them: ${messageOf(error)}`,
      outcome: 'degraded',
      evidence: { endpoint, dropped },
    });
  }
  return {
    ended(span) {
      if (queue.length >= MAX_QUEUED_SPANS) {
        reportDropped(1, new Error('spans arrive faster than the collector accepts them'));
        return;
      }
      queue.push({ span, endedAt: clock.now() });
      if (scheduled) return;
      scheduled = true;
      clock.after(SEND_EVERY_MS, () => {
        scheduled = false;
        void flush();
      });
    },
    close: flush,
  };
}

function otlpRequest(batch: readonly QueuedSpan[], service: string) {
  const resource = {
    attributes: attributes({ 'service.name': `svc-${service}`, 'service.version': version }),
  };
  return {
    resourceSpans: [
      { resource, scopeSpans: [{ scope: { name: 'svc', version }, spans: batch.map(spanOf) }] },
    ],
  };
}

function spanOf({ span, endedAt }: QueuedSpan) {
  return {
    traceId: w3cTraceId(span.traceId),
    spanId: span.spanId,
    ...(span.parentSpanId === undefined ? {} : { parentSpanId: span.parentSpanId }),
    name: span.name,
    kind: KINDS[span.kind],
    startTimeUnixNano: nanos(endedAt - span.durationMs),
    endTimeUnixNano: nanos(endedAt),
    attributes: attributes(span.attributes),
    ...(span.failed ? { status: { code: FAILED } } : {}),
  };
}

/** As text: nanoseconds since 1970 exceed the safe integer range. */
function nanos(ms: number): string {
  return String(BigInt(Math.round(ms * 1000)) * 1000n);
}

function attributes(values: EndedSpan['attributes']) {
  return Object.entries(values).map(([key, value]) => ({
    key,
    value:
      typeof value === 'string'
        ? { stringValue: value }
        : typeof value === 'boolean'
          ? { boolValue: value }
          : Number.isInteger(value)
            ? { intValue: String(value) }
            : { doubleValue: value },
  }));
}
