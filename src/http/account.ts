import type { Logger } from '../kit/telemetry/logger.ts';
import type { Metrics } from '../kit/telemetry/metrics.ts';
import { parentSpanOf } from '../kit/telemetry/trace.ts';
import type { Tracer } from '../kit/telemetry/tracer.ts';

/** Data of an answered request for metrics, logs and traces. */
export interface AnsweredRequest {
  method: string;
  /** Route pattern. Raw paths are not used, because raw paths can contain secrets and are unbounded in number. */
  route: string;
  status: number;
  /** Time at which the request line arrived, from `performance.now()`. */
  startedAt: number;
  requestId: string;
  traceId: string;
  spanId: string;
  /** Tenant id, or an empty string if the request is unauthenticated. */
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
    const parentSpanId = parentSpanOf(answered.traceparent);
    logger.access(method, route, status, durationMs, { requestId, traceId, tenantId, spanId, parentSpanId });
    tracer?.ended({
      traceId,
      spanId,
      parentSpanId,
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
