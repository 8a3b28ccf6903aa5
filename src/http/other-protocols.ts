import type { Random } from '../kit/random.ts';
import { takeEarly } from './early.ts';
import { sendRawError } from './raw-error.ts';
import { idsOf } from './request-ids.ts';
import { protocolFault } from './request-line.ts';
import type { Http } from './server.ts';

/** Answers requests of other protocols before Fastify, which fails on unknown methods. */
export function refuseOtherProtocols(http: Http, random: Random): void {
  const { kit } = http;
  takeEarly(http, (request, response) => {
    const fault = protocolFault(request);
    if (!fault) return false;
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
    return true;
  });
}
