import { createServer } from 'node:http';
import { onTestFinished } from 'vitest';

/** A span as it came over the wire. */
export interface ReceivedSpan {
  service: string;
  traceId: string;
  spanId: string;
  parentSpanId?: string;
  name: string;
  kind: number;
  startTimeUnixNano: string;
  endTimeUnixNano: string;
  status?: { code: number };
  attributes: Record<string, unknown>;
}

export interface OtlpReceiver {
  endpoint: string;
  spans: ReceivedSpan[];
  headers: Array<Record<string, string | string[] | undefined>>;
  /** What is answered from now on; 200 at first. */
  answer: (status: number) => void;
}

/** The receiving end of OTLP over HTTP in JSON, closed when the test ends. */
export async function startOtlpReceiver(): Promise<OtlpReceiver> {
  const spans: ReceivedSpan[] = [];
  const headers: OtlpReceiver['headers'] = [];
  let status = 200;
  const server = createServer(async (request, response) => {
    let text = '';
    for await (const chunk of request) text += chunk;
    headers.push(request.headers);
    if (request.url === '/v1/traces' && status === 200) spans.push(...spansOf(JSON.parse(text)));
    response.writeHead(status, { 'content-type': 'application/json' }).end('{}');
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void server.close());
  const { port } = server.address() as { port: number };
  return {
    endpoint: `http://127.0.0.1:${port}`,
    spans,
    headers,
    answer: (next) => {
      status = next;
    },
  };
}

type Attributes = Array<{ key: string; value: Record<string, unknown> }>;
interface Request {
  resourceSpans: Array<{
    resource: { attributes: Attributes };
    scopeSpans: Array<{
      spans: Array<Omit<ReceivedSpan, 'attributes' | 'service'> & { attributes: Attributes }>;
    }>;
  }>;
}

function spansOf({ resourceSpans }: Request): ReceivedSpan[] {
  return resourceSpans.flatMap(({ resource, scopeSpans }) =>
    scopeSpans.flatMap(({ spans }) =>
      spans.map((span) => ({
        ...span,
        service: String(valuesOf(resource.attributes)['service.name']),
        attributes: valuesOf(span.attributes),
      })),
    ),
  );
}

function valuesOf(attributes: Attributes): Record<string, unknown> {
  return Object.fromEntries(attributes.map(({ key, value }) => [key, Object.values(value)[0]]));
}
