import { setTimeout as sleep } from 'node:timers/promises';
import { z } from 'zod';
import {
  decideApproval,
  getRun,
  listRunSteps,
  listRuns,
  listWorkflows,
  postCancelRunPrefixed,
  RunId,
  RunStatus,
  rerunRun,
  sendSignal,
  startRun,
  type WorkflowRun,
} from '../../../../contracts/index.ts';
import { PlatformError } from '../../../../kit/errors/errors.ts';
import { platformTool } from '../platform-tool.ts';
import type { Tool, ToolRun } from '../tool.ts';
import { Cursor, Limit, Time } from './deliveries.ts';

const MAX_WAIT_MS = 45_000;
const POLL_MS = 250;

const run = { runId: RunId.describe('Id of the run') };
const anyJson = z.json().optional();
const label = z.record(z.string(), z.string()).optional().describe('Labels that the run gets');

/** Statuses in which a run does not change without a decision, or not at all. */
const SETTLED: ReadonlySet<WorkflowRun['status']> = new Set([
  'succeeded',
  'failed',
  'timed_out',
  'cancelled',
]);
const NEEDS_ANSWER: ReadonlySet<WorkflowRun['waitingReason']> = new Set(['approval', 'signal', 'decision']);

export const runTools: readonly Tool[] = [
  platformTool({
    name: 'workflows_list',
    title: 'List workflows',
    description: 'Lists the registered workflows with the JSON Schemas of their inputs.',
    needs: 'viewer',
    input: z.strictObject({}),
    run: (_, { call }) => call(listWorkflows, {}),
  }),
  platformTool({
    name: 'runs_list',
    title: 'List runs',
    description: 'Lists workflow runs, newest first.',
    needs: 'viewer',
    input: z.strictObject({
      status: z.array(RunStatus).min(1).optional(),
      workflowId: z.string().max(256).optional(),
      from: Time,
      to: Time,
      search: z.string().min(1).max(200).optional().describe('Text in the input, or the id of a run'),
      cursor: Cursor,
      limit: Limit,
    }),
    run: ({ from, to, ...query }, { call }) => call(listRuns, { query: { ...query, from, to } as never }),
  }),
  platformTool({
    name: 'run_start',
    title: 'Start a run',
    description:
      'Starts a run of a registered workflow and returns it at once. Use run_wait for the result. With the same idempotencyKey, a repeated call returns the first run.',
    needs: 'editor',
    input: z.strictObject({
      workflowId: z.string().min(1).max(256),
      input: anyJson,
      idempotencyKey: z.string().min(1).max(256).optional(),
      labels: label,
    }),
    run: (body, { call }) => call(startRun, { body: body as never }),
  }),
  platformTool({
    name: 'run_show',
    title: 'Show a run',
    description: 'Shows a run with its jobs, its steps and their attempts.',
    needs: 'viewer',
    input: z.strictObject(run),
    run: async (params, { call }) => {
      const [shown, steps] = await Promise.all([call(getRun, { params }), call(listRunSteps, { params })]);
      return { run: shown, steps: steps.items };
    },
  }),
  platformTool({
    name: 'run_wait',
    title: 'Wait for a run',
    description:
      'Waits until a run ends or needs an answer, at most 45 seconds. With `done: false`, call it again. `waitingSteps` lists approvals and signals that the run waits for.',
    needs: 'viewer',
    input: z.strictObject({
      ...run,
      timeoutMs: z.number().int().min(0).max(MAX_WAIT_MS).default(30_000).describe('Longest wait in ms'),
    }),
    run: waitForRun,
  }),
  platformTool({
    name: 'run_cancel',
    title: 'Cancel a run',
    description: 'Cancels a run. Its clean-up still runs.',
    needs: 'editor',
    destructive: true,
    input: z.strictObject(run),
    run: (params, { call }) => call(postCancelRunPrefixed, { params }),
  }),
  platformTool({
    name: 'run_rerun',
    title: 'Run again',
    description:
      'Starts a new run with the definition and the input of an ended run. With fromStep (`<job>.<step>`), earlier results are reused.',
    needs: 'editor',
    input: z.strictObject({ ...run, fromStep: z.string().max(256).optional(), input: anyJson }),
    run: ({ runId, ...body }, { call }) => call(rerunRun, { params: { runId }, body: body as never }),
  }),
  platformTool({
    name: 'approval_answer',
    title: 'Answer an approval',
    description:
      'Answers a step that waits for an approval or a signal, if the step allows agents to. Other steps need a person. The step may require a higher role.',
    needs: 'editor',
    input: z.strictObject({
      ...run,
      stepId: z.string().min(1).max(256).describe('`<job>.<step>`, from run_show or run_wait'),
      approved: z.boolean(),
      comment: z.string().max(4096).optional(),
      data: anyJson.describe('Data that the form of the step asks for, or the payload of the signal'),
    }),
    run: answerStep,
  }),
];

interface StepAnswer {
  runId: RunId;
  stepId: string;
  approved: boolean;
  comment?: string | undefined;
  data?: unknown;
}

/** The workflow service refuses the answer unless the step allows agents. */
async function answerStep({ runId, stepId, ...body }: StepAnswer, { call }: ToolRun) {
  const { items } = await call(listRunSteps, { params: { runId } });
  const wait = items.find(({ id }) => id === stepId)?.waitingFor;
  if (wait?.for !== 'signal' || wait.name === undefined)
    return call(decideApproval, { params: { runId, stepId }, body: body as never });
  if (!body.approved)
    throw new PlatformError('VALIDATION_ERROR', 'approved: a signal can be sent, but not refused.');
  const payload = (body.data ?? null) as never;
  return call(sendSignal, { params: { runId, name: wait.name }, body: { payload } });
}

/** Polls the run. Time is counted in polls, so that a frozen clock cannot extend the wait. */
async function waitForRun(
  { runId, timeoutMs }: { runId: RunId; timeoutMs: number },
  { call, client, signal, questions }: ToolRun,
) {
  await questions?.take(runId);
  const polls = Math.ceil(timeoutMs / POLL_MS);
  for (let poll = 0; ; poll++) {
    const found = await call(getRun, { params: { runId } });
    const needsAnswer = NEEDS_ANSWER.has(found.waitingReason);
    const done = SETTLED.has(found.status);
    const isAsked = needsAnswer && (await questions?.ask(found)) === true;
    if (done || (needsAnswer && !isAsked) || poll >= polls) {
      const waitingSteps = needsAnswer ? await waitingStepsOf(runId, call) : [];
      return { done, needsAnswer, waitingSteps, run: found };
    }
    await client.progress(poll, polls, `The run is ${found.status}.`);
    await sleep(POLL_MS, undefined, { signal });
  }
}

async function waitingStepsOf(runId: RunId, call: ToolRun['call']) {
  const { items } = await call(listRunSteps, { params: { runId } });
  return items
    .filter(({ waitingFor }) => waitingFor !== null)
    .map(({ id, name, waitingFor, wakeAt }) => ({ stepId: id, name, waitingFor, timesOutAt: wakeAt }));
}
