import {
  cancelJob,
  cancelRun,
  decideApproval,
  decideStep,
  disablePlugin,
  type Endpoint,
  enablePlugin,
  getJob,
  getPlugin,
  getRun,
  HEADERS,
  installPlugin,
  linkPlugin,
  listJobs,
  listPlugins,
  listRunEvents,
  listRunLogs,
  listRunSteps,
  listRuns,
  listSchedules,
  listWorkflows,
  pauseRun,
  pauseSchedule,
  pauseWorkflow,
  planPlugin,
  postCancelRunPrefixed,
  reloadPlugins,
  rerunRun,
  resumeRun,
  resumeSchedule,
  resumeWorkflow,
  sendSignal,
  startRun,
  submitJob,
  triggerSchedule,
  uninstallPlugin,
  unlinkPlugin,
  updatePlugin,
} from '../../../contracts/index.ts';
import { type Http, mount, serviceHeaders } from '../../../http/index.ts';
import { traceparentOf } from '../../../kit/telemetry/trace.ts';
import type { Owner, RestServices } from '../services.ts';

/**
 * The service that owns each endpoint, and the operation name of the endpoint in metrics. @spec REST API: workflows,
 * jobs, marketplace, logs, analytics
 */
const OWNED: ReadonlyArray<[Owner, domain: string, operation: string, Endpoint]> = [
  ['workflow', 'workflows', 'start_run', startRun],
  ['workflow', 'workflows', 'list_runs', listRuns],
  ['workflow', 'workflows', 'get_run', getRun],
  ['workflow', 'workflows', 'cancel_run', cancelRun],
  ['workflow', 'workflows', 'list_run_logs', listRunLogs],
  ['workflow', 'workflows', 'list_run_events', listRunEvents],
  ['workflow', 'workflows', 'list_run_steps', listRunSteps],
  ['workflow', 'workflows', 'cancel_run', postCancelRunPrefixed],
  ['workflow', 'workflows', 'rerun', rerunRun],
  ['workflow', 'workflows', 'pause_run', pauseRun],
  ['workflow', 'workflows', 'resume_run', resumeRun],
  ['workflow', 'workflows', 'pause_workflow', pauseWorkflow],
  ['workflow', 'workflows', 'resume_workflow', resumeWorkflow],
  ['workflow', 'workflows', 'decide_approval', decideApproval],
  ['workflow', 'workflows', 'decide_step', decideStep],
  ['workflow', 'workflows', 'send_signal', sendSignal],
  ['workflow', 'workflows', 'list_workflows', listWorkflows],
  ['workflow', 'workflows', 'list_schedules', listSchedules],
  ['workflow', 'workflows', 'pause_schedule', pauseSchedule],
  ['workflow', 'workflows', 'resume_schedule', resumeSchedule],
  ['workflow', 'workflows', 'trigger_schedule', triggerSchedule],
  ['workflow', 'jobs', 'submit_job', submitJob],
  ['workflow', 'jobs', 'list_jobs', listJobs],
  ['workflow', 'jobs', 'get_job', getJob],
  ['workflow', 'jobs', 'cancel_job', cancelJob],
  ['marketplace', 'marketplace', 'list_plugins', listPlugins],
  ['marketplace', 'marketplace', 'install_plugin', installPlugin],
  ['marketplace', 'marketplace', 'get_plugin', getPlugin],
  ['marketplace', 'marketplace', 'uninstall_plugin', uninstallPlugin],
  ['marketplace', 'marketplace', 'plan_plugin', planPlugin],
  ['marketplace', 'marketplace', 'update_plugin', updatePlugin],
  ['marketplace', 'marketplace', 'enable_plugin', enablePlugin],
  ['marketplace', 'marketplace', 'disable_plugin', disablePlugin],
  ['marketplace', 'marketplace', 'link_plugin', linkPlugin],
  ['marketplace', 'marketplace', 'unlink_plugin', unlinkPlugin],
  ['marketplace', 'marketplace', 'reload_plugins', reloadPlugins],
];

export function forwardedRoutes(http: Http, services: RestServices): void {
  for (const [owner, domain, operation, endpoint] of OWNED) {
    forward(http, endpoint, services, { owner, domain, operation });
  }
}

/**
 * Validates the request, then calls the service that owns the endpoint on behalf of the caller. Invalid requests thus
 * cause no further call.
 */
function forward(
  http: Http,
  endpoint: Endpoint,
  { owners, observe, internalSecret }: RestServices,
  { owner, domain, operation }: { owner: Owner; domain: string; operation: string },
): void {
  mount(http, endpoint, { auth: 'caller' }, ({ params, query, body, caller, request }) =>
    observe(domain, operation, () =>
      owners[owner].call(
        endpoint,
        { params, query, body },
        {
          headers: {
            ...serviceHeaders(internalSecret, caller),
            [HEADERS.requestId]: request.id,
            [HEADERS.traceId]: request.traceId,
            traceparent: traceparentOf(request.headers, request.traceId, request.spanId),
            ...passedOn(request.headers['idempotency-key']),
          },
        },
      ),
    ),
  );
}

/** Returns a header with the caller's idempotency key. Returns no header if the caller sent no key. */
function passedOn(key: string | string[] | undefined): Record<string, string> {
  return typeof key === 'string' ? { 'idempotency-key': key } : {};
}
