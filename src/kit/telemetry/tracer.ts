/** A finished span. Ids are hex; a trace id not in W3C form is hashed. */
export interface EndedSpan {
  traceId: string;
  spanId: string;
  parentSpanId: string | undefined;
  name: string;
  kind: 'server' | 'internal';
  durationMs: number;
  failed: boolean;
  attributes: Record<string, string | number | boolean>;
}

/** Sink of finished spans. Exists only if OTEL_EXPORTER_OTLP_ENDPOINT is set. */
export interface Tracer {
  /** Queues a finished span. The call is cheap, as the span is sent later. */
  ended(span: EndedSpan): void;
  /** Sends queued spans, with a short timeout. */
  close(): Promise<void>;
}

export interface OtlpTarget {
  /** Base URL, as in OTEL_EXPORTER_OTLP_ENDPOINT; `/v1/traces` is appended. */
  endpoint: string;
  headers: Record<string, string>;
}

/** Reads the standard OTEL variables. Undefined without an endpoint. Headers are `name=value,…` with URL-encoded values. */
export function otlpTarget(env: Record<string, string | undefined>): OtlpTarget | undefined {
  const endpoint = env.OTEL_EXPORTER_OTLP_ENDPOINT;
  if (!endpoint) return undefined;
  const pairs = (env.OTEL_EXPORTER_OTLP_HEADERS ?? '')
    .split(',')
    .map((pair) => pair.split('='))
    .filter((pair) => pair.length > 1)
    .map(([name, ...rest]) => [name!.trim(), decodeURIComponent(rest.join('=').trim())]);
  return { endpoint: endpoint.replace(/\/$/, ''), headers: Object.fromEntries(pairs) };
}
