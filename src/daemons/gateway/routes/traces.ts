import { getTrace } from '../../../contracts/index.ts';
import { type Http, mount } from '../../../http/index.ts';
import type { Traces } from '../domain/traces/traces.ts';

const READS_PER_MINUTE = 600;

/** @spec docs/observability.md "Traces" */
export function tracesRoutes(http: Http, { traces }: { traces: Traces }): void {
  mount(
    http,
    getTrace,
    { auth: 'caller', perMinute: READS_PER_MINUTE },
    ({ params, query, caller, request }) => {
      const { id: requestId, traceId } = request;
      return traces.get({ ...caller, requestId, traceId }, params.traceId, query.limit);
    },
  );
}
