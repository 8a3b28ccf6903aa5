import { listSchedules, pauseSchedule, resumeSchedule, triggerSchedule } from '../../../contracts/index.ts';
import { type Http, mount } from '../../../http/index.ts';
import type { WorkflowServices } from '../services.ts';
import { starterOf } from './starter.ts';

const auth = 'caller';

/** Routes to list and control schedules. @spec docs/workflows.md "Schedules" */
export function scheduleRoutes(http: Http, { schedules }: WorkflowServices): void {
  mount(http, listSchedules, { auth }, async ({ caller }) => ({
    items: await schedules.list(caller.namespaceId),
    nextCursor: null,
  }));
  mount(http, pauseSchedule, { auth }, async ({ params, caller }) => ({
    schedule: await schedules.pause(caller.namespaceId, params.scheduleId),
  }));
  mount(http, resumeSchedule, { auth }, async ({ params, caller }) => ({
    schedule: await schedules.resume(caller.namespaceId, params.scheduleId),
  }));
  mount(http, triggerSchedule, { auth }, async ({ params, caller, request }) => ({
    run: await schedules.trigger(caller.namespaceId, params.scheduleId, starterOf(caller, request)),
  }));
}
