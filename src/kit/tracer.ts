/** A span that has ended. Ids are hex; the trace id may be of any form and is hashed where it is not W3C's. */
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

/** Where ended spans go: there is one only where OTEL_EXPORTER_OTLP_ENDPOINT is set. */
export interface Tracer {
  /** Costs an object and a push. */
  ended(span: EndedSpan): void;
  /** Sends what is left, waiting a moment at most. */
  close(): Promise<void>;
}

export interface OtlpTarget {
  /** Base URL, as in OTEL_EXPORTER_OTLP_ENDPOINT; `/v1/traces` is appended. */
  endpoint: string;
  headers: Record<string, string>;
}

/** The standard variables, or undefined where no endpoint is set. `headers` are `name=value` with commas between, values URL-encoded. */
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
