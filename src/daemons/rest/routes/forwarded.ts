import {
  cancelRun,
  type Endpoint,
  getJob,
  getPlugin,
  getRun,
  HEADERS,
  installPlugin,
  listPlugins,
  listRunLogs,
  listRuns,
  startRun,
  submitJob,
  uninstallPlugin,
} from '../../../contracts/index.ts';
import { type Http, mount, serviceHeaders } from '../../../http/index.ts';
import type { Owner, RestServices } from '../services.ts';

/** Which daemon serves which row, with what its operation is called in the metrics. @spec REST API: workflows, jobs, marketplace, logs, analytics */
const OWNED: ReadonlyArray<[Owner, domain: string, operation: string, Endpoint]> = [
  ['workflow', 'workflows', 'start_run', startRun],
  ['workflow', 'workflows', 'list_runs', listRuns],
  ['workflow', 'workflows', 'get_run', getRun],
  ['workflow', 'workflows', 'cancel_run', cancelRun],
  ['workflow', 'workflows', 'list_run_logs', listRunLogs],
  ['workflow', 'jobs', 'submit_job', submitJob],
  ['workflow', 'jobs', 'get_job', getJob],
  ['marketplace', 'marketplace', 'list_plugins', listPlugins],
  ['marketplace', 'marketplace', 'install_plugin', installPlugin],
  ['marketplace', 'marketplace', 'get_plugin', getPlugin],
  ['marketplace', 'marketplace', 'uninstall_plugin', uninstallPlugin],
];

export function forwardedRoutes(http: Http, services: RestServices): void {
  for (const [owner, domain, operation, endpoint] of OWNED) {
    forward(http, endpoint, services, { owner, domain, operation });
  }
}

/** Checks the request here, so that faults are answered without a hop, and calls the owner on the caller's behalf. */
function forward(
  http: Http,
  endpoint: Endpoint,
  { owners, observe, internalSecret }: RestServices,
  { owner, domain, operation }: { owner: Owner; domain: string; operation: string },
): void {
  mount(http, endpoint, { auth: 'caller' }, ({ params, query, body, caller, request }) =>
    observe(domain, operation, () =>
      owners[owner].call(endpoint, { params, query, body } as never, {
        headers: {
          ...serviceHeaders(internalSecret, caller),
          [HEADERS.requestId]: request.id,
          [HEADERS.traceId]: request.traceId,
        },
      }),
    ),
  );
}
