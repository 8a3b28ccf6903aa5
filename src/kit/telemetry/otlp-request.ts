import { version } from '../files/paths.ts';
import { w3cTraceId } from './trace.ts';
import type { EndedSpan } from './tracer.ts';

const KINDS = { internal: 1, server: 2 } as const;
const FAILED = 2;

export interface TimedSpan {
  span: EndedSpan;
  /** End time in epoch ms. */
  endedAt: number;
}

/** Returns the body of a POST to `/v1/traces` of a collector. */
export function otlpRequest(batch: readonly TimedSpan[], service: string) {
  const resource = {
    attributes: attributes({ 'service.name': `svc-${service}`, 'service.version': version }),
  };
  return {
    resourceSpans: [
      { resource, scopeSpans: [{ scope: { name: 'svc', version }, spans: batch.map(spanOf) }] },
    ],
  };
}

function spanOf({ span, endedAt }: TimedSpan) {
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

/** Converts epoch ms to nanoseconds. The result is text, because the number exceeds the safe integer range. */
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
