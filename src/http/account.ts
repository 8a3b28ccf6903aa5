import type { Logger } from '../kit/logger.ts';
import type { Metrics } from '../kit/metrics.ts';
import { parentSpanOf } from '../kit/trace.ts';
import type { Tracer } from '../kit/tracer.ts';

/** What there is to say of a request that was answered, whoever answered it. */
export interface AnsweredRequest {
  method: string;
  /** The pattern: a raw path may carry what neither a log nor a label must have. */
  route: string;
  status: number;
  /** `performance.now()` at the request line. */
  startedAt: number;
  requestId: string;
  traceId: string;
  spanId: string;
  /** Empty until somebody authenticated. */
  tenantId: string;
  /** The header, as sent. */
  traceparent: unknown;
}

/** Counts and logs a request. */
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
