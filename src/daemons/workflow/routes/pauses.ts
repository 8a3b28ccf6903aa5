import { pauseRun, pauseWorkflow, resumeRun, resumeWorkflow } from '../../../contracts/index.ts';
import { type Http, mount } from '../../../http/index.ts';
import type { WorkflowServices } from '../services.ts';

const auth = 'caller';

/** Routes to pause and resume runs and workflows. @spec docs/workflows.md "Pause and resume" */
export function pauseRoutes(http: Http, { pauses }: Pick<WorkflowServices, 'pauses'>): void {
  mount(http, pauseRun, { auth }, async ({ params, caller }) => ({
    run: await pauses.pauseRun(caller.namespaceId, params.runId),
  }));
  mount(http, resumeRun, { auth }, async ({ params, caller }) => ({
    run: await pauses.resumeRun(caller.namespaceId, params.runId),
  }));
  mount(http, pauseWorkflow, { auth }, async ({ params: { workflowId }, caller }) => {
    await pauses.pauseWorkflow({ tenantId: caller.namespaceId, workflowId });
    return { workflowId, paused: true };
  });
  mount(http, resumeWorkflow, { auth }, async ({ params: { workflowId }, caller }) => {
    await pauses.resumeWorkflow({ tenantId: caller.namespaceId, workflowId });
    return { workflowId, paused: false };
  });
}
