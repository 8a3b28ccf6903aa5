import type { FastifyReply } from 'fastify';
import {
  approveWorkflowSecrets,
  cancelRun,
  cancelRuns,
  countRuns,
  decideApproval,
  decideStep,
  decideSteps,
  getRun,
  listRunEvents,
  listRunLogs,
  listRunSteps,
  listRuns,
  listWorkflows,
  postCancelRun,
  postCancelRunPrefixed,
  previewRerun,
  rerunRun,
  rerunRuns,
  sendSignal,
  startRun,
} from '../../../contracts/index.ts';
import { createEventStreams, type Http, mount, type StreamCall } from '../../../http/index.ts';
import { summaryOf } from '../domain/definition/definitions.ts';
import type { Page, PageRequest } from '../domain/runs/pages.ts';
import { requireAgents } from '../domain/runs/required-role.ts';
import type { WorkflowServices } from '../services.ts';
import { followRun, type LiveSource, resumeAt, wantsStream } from './live.ts';
import { idempotencyKeyOf, starterOf } from './starter.ts';

const auth = 'caller';
/** Maximum number of open streams. Each stream reads the store once a second and after every change of its run. */
const MAX_STREAMS = 400;
const PAGE = 500;

/** Routes to start, read, cancel and rerun runs. @spec Workflow daemon; REST API: workflows */
export function runRoutes(http: Http, services: WorkflowServices): void {
  const { runs, reruns, bulkRuns } = services;
  mount(http, startRun, { auth }, async ({ body, caller, request }) => ({
    run: await runs.start(
      { ...body, idempotencyKey: idempotencyKeyOf(body, request) },
      starterOf(caller, request),
    ),
  }));
  mount(http, listRuns, { auth }, ({ query, caller }) => runs.list(caller.namespaceId, query));
  mount(http, countRuns, { auth }, ({ query, caller }) => runs.countByHour(caller.namespaceId, query));
  mount(http, getRun, { auth }, ({ params, caller }) => runs.get(caller.namespaceId, params.runId));
  for (const endpoint of [cancelRun, postCancelRun, postCancelRunPrefixed])
    mount(http, endpoint, { auth }, ({ params, caller }) => runs.cancel(caller.namespaceId, params.runId));
  mount(http, rerunRun, { auth }, async ({ params, body, caller, request }) => ({
    run: await reruns.rerun(caller.namespaceId, params.runId, body, starterOf(caller, request)),
  }));
  mount(http, previewRerun, { auth }, ({ params, body, caller, request }) =>
    reruns.preview(caller.namespaceId, params.runId, body, starterOf(caller, request)),
  );
  mount(http, cancelRuns, { auth }, ({ body, caller }) => bulkRuns.cancel(caller.namespaceId, body));
  mount(http, rerunRuns, { auth }, ({ body, caller, request }) =>
    bulkRuns.rerun(caller.namespaceId, body, starterOf(caller, request)),
  );
  mount(http, listRunSteps, { auth }, async ({ params, caller }) => ({
    items: await runs.steps(caller.namespaceId, params.runId),
    nextCursor: null,
  }));
  workflowRoutes(http, services);
}

function workflowRoutes(http: Http, { definitions, secretApprovals, pauses }: WorkflowServices): void {
  mount(http, listWorkflows, { auth }, async ({ caller }) => {
    const paused = await pauses.pausedWorkflows(caller.namespaceId);
    const items = await Promise.all(
      [...definitions.registered.values()].map(async (registered) => {
        const secrets = await secretApprovals.stateOf(caller.namespaceId, registered.workflow);
        const isPaused = paused.has(registered.workflow.definition.id);
        return { ...summaryOf(registered), paused: isPaused, ...(secrets ? { secrets } : {}) };
      }),
    );
    const pausedUnregistered = [...paused].filter((id) => !definitions.registered.has(id));
    return { items, nextCursor: null, faults: [...definitions.faults], pausedUnregistered };
  });
  mount(http, approveWorkflowSecrets, { auth }, ({ params, body, caller }) =>
    secretApprovals.approve(caller.namespaceId, params.workflowId, { hash: body.hash, by: caller.hostId }),
  );
}

/** Routes for signals, approvals and decisions. @spec docs/workflows.md "HTTP" */
export function answerRoutes(http: Http, { runs, decisions }: WorkflowServices): void {
  const accepted = { accepted: true } as const;
  mount(http, decideApproval, { auth }, async ({ params: { runId, stepId }, body, caller }) => {
    const { approved, comment = null, data } = body;
    const answer = { approved, by: caller.hostId, comment, data, via: caller.via };
    await runs.approve(caller.namespaceId, runId, stepId, answer, caller.role);
    return accepted;
  });
  mount(http, decideStep, { auth }, async ({ params: { runId, stepId }, body, caller }) => {
    requireAgents('decision', undefined, caller.via);
    await runs.decide(caller.namespaceId, runId, stepId, { ...body, by: caller.hostId });
    return accepted;
  });
  mount(http, decideSteps, { auth }, ({ body: { action, output, ...filter }, caller }) => {
    requireAgents('decision', undefined, caller.via);
    return decisions.decide(caller.namespaceId, filter, { action, output, by: caller.hostId });
  });
  mount(http, sendSignal, { auth }, async ({ params: { runId, name }, body, caller, request }) => {
    const key = idempotencyKeyOf(body, request);
    const { namespaceId, role, hostId: by, via } = caller;
    await runs.signal(namespaceId, runId, name, body.payload, { key, role, by, via });
    return accepted;
  });
}

/** Routes for the log lines and events of a run, in pages or as a live stream. @spec docs/workflows.md "HTTP" */
export function streamRoutes(http: Http, { runs, watch, clock }: WorkflowServices): void {
  const streams = createEventStreams(http, { what: 'runs', count: MAX_STREAMS });

  async function follow<Item extends { id: number }>(
    call: StreamCall & { params: { runId: string }; query: PageRequest },
    page: (asked: PageRequest) => Promise<Page<Item>>,
  ): Promise<FastifyReply> {
    const { caller, params, query, request } = call;
    const source: LiveSource<Item> = {
      ...{ watch, clock, runId: params.runId },
      page: (cursor) => page({ limit: PAGE, cursor }),
      isOver: () => runs.isOver(caller.namespaceId, params.runId),
    };
    await streams.send(call, (signal) => followRun(source, resumeAt(request, query.cursor), signal));
    return call.reply;
  }

  mount(http, listRunLogs, { auth }, (call) => {
    const { params, query, caller, request } = call;
    const page = (asked: PageRequest & { order?: 'asc' | 'desc' }) =>
      runs.logs(caller.namespaceId, params.runId, { ...query, ...asked });
    return wantsStream(request) ? follow(call, (asked) => page({ ...asked, order: 'asc' })) : page(query);
  });
  mount(http, listRunEvents, { auth }, (call) => {
    const { params, query, caller, request } = call;
    const page = (asked: PageRequest) => runs.events(caller.namespaceId, params.runId, asked);
    return wantsStream(request) ? follow(call, page) : page(query);
  });
}
