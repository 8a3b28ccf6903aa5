import { HEADERS } from '../../../contracts/index.ts';
import { type CallOptions, serviceHeaders } from '../../../http/index.ts';
import { traceparent } from '../../../kit/telemetry/trace.ts';
import type { CallScope } from '../../../plugins/index.ts';
import type { Resources } from '../../define-daemon.ts';

/** Returns a function that creates the options for calling another service on behalf of an execution. */
export function callOptions({ internalSecret }: Resources['keys']): (scope: CallScope) => CallOptions {
  return ({ tenantId, user, requestId, traceId, spanId, deliveryId, signal }) => ({
    signal,
    headers: {
      ...serviceHeaders(internalSecret, {
        namespaceId: tenantId,
        ...(user === null ? {} : { hostId: user.hostId }),
      }),
      [HEADERS.requestId]: requestId,
      [HEADERS.traceId]: traceId,
      ...(deliveryId === undefined ? {} : { [HEADERS.deliveryId]: deliveryId }),
      ...(spanId === undefined ? {} : { traceparent: traceparent(traceId, spanId) }),
    },
  });
}
