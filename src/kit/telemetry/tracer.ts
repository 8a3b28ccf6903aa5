/** A finished span. Trace ids that are not in W3C form are hashed on export. */
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

/** Exports finished spans. Services have a tracer only if OTEL_EXPORTER_OTLP_ENDPOINT is set. */
export interface Tracer {
  ended(span: EndedSpan): void;
  /** Sends queued spans, with a short timeout. */
  close(): Promise<void>;
}

export interface OtlpTarget {
  /** Base URL, as in OTEL_EXPORTER_OTLP_ENDPOINT. `/v1/traces` is appended to the URL. */
  endpoint: string;
  headers: Record<string, string>;
}

/**
 * Reads the export target from OTEL_EXPORTER_OTLP_ENDPOINT and OTEL_EXPORTER_OTLP_HEADERS. Returns undefined if the
 * endpoint is not set.
 */
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
