import type { RequestListener } from 'node:http';
import type { Random } from '../kit/security/random.ts';
import type { HttpKit } from './http-kit.ts';
import { sendRawError } from './raw-error.ts';
import { idsOf } from './request-ids.ts';
import { protocolFault } from './request-line.ts';

/**
 * Answers 400 to requests that are not valid HTTP/1.0 or HTTP/1.1, because Fastify would fail on methods of other
 * protocols. Passes all other requests to `serve`.
 */
export function refuseOtherProtocols(kit: HttpKit, random: Random, serve: RequestListener): RequestListener {
  return (request, response) => {
    const fault = protocolFault(request);
    if (!fault) return serve(request, response);
    const startedAt = performance.now();
    kit.lastRequestAt = startedAt;
    const ids = idsOf(request.headers, random);
    sendRawError(response, fault, ids.requestId);
    kit.accountAnswered({
      ...ids,
      method: request.method!,
      route: '(none)',
      status: fault.status,
      startedAt,
      tenantId: '',
      traceparent: request.headers.traceparent,
    });
  };
}
