import { cancelJob, getJob, listJobs, submitJob } from '../../../contracts/index.ts';
import { type Http, mount } from '../../../http/index.ts';
import type { WorkflowServices } from '../services.ts';
import { idempotencyKeyOf, starterOf } from './starter.ts';

const auth = 'caller';

/** Routes to submit, list, read and cancel background jobs. @spec REST API: jobs */
export function jobRoutes(http: Http, { jobs }: WorkflowServices): void {
  mount(http, submitJob, { auth }, async ({ body, caller, request }) => ({
    job: await jobs.submit(
      { ...body, idempotencyKey: idempotencyKeyOf(body, request) },
      starterOf(caller, request),
    ),
  }));
  mount(http, listJobs, { auth }, ({ query, caller }) => jobs.list(caller.namespaceId, query));
  mount(http, getJob, { auth }, ({ params, caller }) => jobs.get(caller.namespaceId, params.jobId));
  mount(http, cancelJob, { auth }, ({ params, caller }) => jobs.cancel(caller.namespaceId, params.jobId));
}
