import type { Clock } from './clock.ts';
import { seconds } from './duration.ts';
import { messageOf } from './errors.ts';
import type { Logger } from './logger.ts';
import { version } from './paths.ts';
import { w3cTraceId } from './trace.ts';
import type { EndedSpan, OtlpTarget, Tracer } from './tracer.ts';

/** Loaded only where an endpoint is set. Spans go out as OTLP over HTTP in its JSON form, which every collector takes. */

const SEND_EVERY_MS = seconds(1);
const BATCH = 512;
/** More than this waits for no collector. */
const MOST_WAITING = 4096;
const TIMEOUT_MS = seconds(5);
const KINDS = { internal: 1, server: 2 } as const;
const FAILED = 2;

export interface OtlpTracerOptions extends OtlpTarget {
  service: string;
  clock: Clock;
  logger: Logger;
}

interface Waiting {
  span: EndedSpan;
  /** Epoch ms. */
  endedAt: number;
}

/** Gathers spans and sends them once a second; what a collector does not take is dropped, and said once until it does again. */
export function createOtlpTracer(options: OtlpTracerOptions): Tracer {
  const { endpoint, clock, logger } = options;
  const waiting: Waiting[] = [];
  let scheduled = false;
  let dropped = 0;
  let complained = false;
  let sending: Promise<void> = Promise.resolve();

  function flush(): Promise<void> {
    while (waiting.length > 0) {
      const batch = waiting.splice(0, BATCH);
      sending = sending.then(() => post(batch));
    }
    return sending;
  }
  async function post(batch: Waiting[]): Promise<void> {
    try {
      const response = await fetch(`${endpoint}/v1/traces`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', ...options.headers },
        body: JSON.stringify(otlpRequest(batch, options.service)),
        signal: AbortSignal.timeout(TIMEOUT_MS),
      });
      await response.arrayBuffer();
      if (!response.ok) throw new Error(`it answered ${response.status}`);
      complained = false;
    } catch (error) {
      complain(batch.length, error);
    }
  }
  function complain(count: number, error: unknown): void {
    dropped += count;
    if (complained) return;
    complained = true;
    logger.diagnostic({
      domain: 'tracing',
      event: 'tracing.export_failed',
      level: 'warn',
      reasonCode: 'TRACES_DROPPED',
      message: `Spans could not be sent to ${endpoint} and are dropped until they can: ${messageOf(error)}`,
      outcome: 'degraded',
      evidence: { endpoint, dropped },
    });
  }
  return {
    ended(span) {
      if (waiting.length >= MOST_WAITING) {
        complain(1, new Error('more come than it takes'));
        return;
      }
      waiting.push({ span, endedAt: clock.now() });
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

function otlpRequest(batch: readonly Waiting[], service: string) {
  const resource = {
    attributes: attributes({ 'service.name': `svc-${service}`, 'service.version': version }),
  };
  return {
    resourceSpans: [
      { resource, scopeSpans: [{ scope: { name: 'svc', version }, spans: batch.map(spanOf) }] },
    ],
  };
}

function spanOf({ span, endedAt }: Waiting) {
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

/** As text: nanoseconds since 1970 are no exact number. */
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
