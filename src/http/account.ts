import type { Logger } from '../kit/telemetry/logger.ts';
import type { Metrics } from '../kit/telemetry/metrics.ts';
import { parentSpanOf } from '../kit/telemetry/trace.ts';
import type { Tracer } from '../kit/telemetry/tracer.ts';

/** An answered request, as metrics, logs and traces describe it. */
export interface AnsweredRequest {
  method: string;
  /** The route pattern, never the raw path, because raw paths may contain secrets and are unbounded in number. */
  route: string;
  status: number;
  /** `performance.now()` when the request line arrived. */
  startedAt: number;
  requestId: string;
  traceId: string;
  spanId: string;
  /** Id of the tenant. It is empty if the request is unauthenticated. */
  tenantId: string;
  /** The `traceparent` header as received. */
  traceparent: unknown;
}

/** Records a finished request in the metrics, the access log and the trace. */
export type Account = (answered: AnsweredRequest) => void;

export function createAccount({
  logger,
  metrics,
  tracer,
}: {
  logger: Logger;
  metrics: Metrics;
  tracer?: Tracer | undefined;
}): Account {
  return (answered) => {
    const { method, route, status, requestId, traceId, spanId, tenantId } = answered;
    const durationMs = performance.now() - answered.startedAt;
    metrics.observeRequest(method, route, status, durationMs);
    logger.access(method, route, status, durationMs, answered);
    tracer?.ended({
      traceId,
      spanId,
      parentSpanId: parentSpanOf(answered.traceparent),
      name: `${method} ${route}`,
      kind: 'server',
      durationMs,
      failed: status >= 500,
      attributes: {
        'http.request.method': method,
        'http.route': route,
        'http.response.status_code': status,
        'svc.request_id': requestId,
        ...(tenantId === '' ? {} : { 'svc.tenant_id': tenantId }),
      },
    });
  };
}
