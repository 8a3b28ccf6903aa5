import { listTracedRuns } from '../../../contracts/index.ts';
import { type Http, mount } from '../../../http/index.ts';
import type { WorkflowServices } from '../services.ts';

/** Route that the gateway calls to show a trace. @spec docs/observability.md "Traces" */
export function traceRoutes(http: Http, { traces }: Pick<WorkflowServices, 'traces'>): void {
  mount(http, listTracedRuns, { auth: 'caller' }, ({ params, caller }) =>
    traces.runs(caller.namespaceId, params.traceId),
  );
}
