import { createHash } from 'node:crypto';
import type { RunLabels, WorkflowRun } from '../../../../contracts/index.ts';
import { minutes, seconds } from '../../../../kit/time/duration.ts';
import type { ObjectSchema } from '../tool.ts';

/** A task is a run with these labels. There is no other store of tasks. */
const LABELS = { owner: 'mcp/task', tool: 'mcp/tool', ttl: 'mcp/ttl' } as const;
const MIN_TTL_MS = minutes(1);
const POLL_INTERVAL_MS = seconds(1);

export type TaskStatus = 'working' | 'input_required' | 'completed' | 'failed' | 'cancelled';

/** State of a task that both revisions show. */
export interface TaskState {
  taskId: string;
  status: TaskStatus;
  statusMessage: string;
  /** Times are in epoch ms. */
  createdAt: number;
  updatedAt: number;
  ttlMs: number;
}

/** Schema of the results of tools that start runs. The call returns the first two fields, its task all. */
export const RUN_RESULT: ObjectSchema = {
  type: 'object',
  properties: {
    runId: { type: 'string' },
    status: { type: 'string' },
    output: { description: 'Output of the run, when it has succeeded' },
    error: { type: 'object', description: 'Error of the run, when it has failed' },
  },
  required: ['runId', 'status'],
};

/** Returns the labels of a new task. `asked` is the TTL that the client asked for, in ms. */
export function taskLabels(
  hostId: string,
  toolName: string,
  { asked, maxMs }: { asked: number | undefined; maxMs: number },
): RunLabels {
  const ttlMs = Math.min(Math.max(asked ?? maxMs, MIN_TTL_MS), maxMs);
  return {
    [LABELS.owner]: ownerLabel(hostId),
    [LABELS.tool]: toolName,
    [LABELS.ttl]: String(Math.round(ttlMs)),
  };
}

/** Returns the filter for the tasks of a caller. */
export const ownerFilter = (hostId: string): string => `${LABELS.owner}:${ownerLabel(hostId)}`;

export const toolOf = ({ labels }: WorkflowRun): string => labels[LABELS.tool] ?? '';

/** Returns whether the run is a task of the caller that has not expired. Labels alone are no proof, as callers set them. */
export function isTaskOf(run: WorkflowRun, hostId: string, now: number): boolean {
  return (
    run.labels[LABELS.owner] === ownerLabel(hostId) &&
    run.startedBy === hostId &&
    run.parentRunId === null &&
    now < run.createdAt + ttlOf(run)
  );
}

/** Returns the state of the task. `asks` is whether questions for the client are open. */
export function taskState(run: WorkflowRun, asks: boolean): TaskState {
  const { id, createdAt, startedAt, finishedAt } = run;
  return {
    ...{ taskId: id, ...statusOf(run, asks), createdAt },
    updatedAt: finishedAt ?? startedAt ?? createdAt,
    ttlMs: ttlOf(run),
  };
}

export const isTerminal = (status: TaskStatus): boolean =>
  status === 'completed' || status === 'failed' || status === 'cancelled';

/** Returns the task as the revision 2025-11-25 shows it. */
export function legacyTask({ createdAt, updatedAt, ttlMs, ...task }: TaskState) {
  return { ...task, ...times(createdAt, updatedAt), ttl: ttlMs, pollInterval: POLL_INTERVAL_MS };
}

/** Returns the task as the extension of the revision 2026-07-28 shows it. A failed run is a result there. */
export function modernTask({ createdAt, updatedAt, ttlMs, ...task }: TaskState) {
  const status: TaskStatus = task.status === 'failed' ? 'completed' : task.status;
  return { ...task, status, ...times(createdAt, updatedAt), ttlMs, pollIntervalMs: POLL_INTERVAL_MS };
}

/** Returns the value that the tool of the run yields, whether its run has succeeded or not. */
export function resultValue({ id, status, output, error }: WorkflowRun): Record<string, unknown> {
  return { runId: id, status, ...(error ? { error } : status === 'succeeded' ? { output } : {}) };
}

function statusOf(run: WorkflowRun, asks: boolean): Pick<TaskState, 'status' | 'statusMessage'> {
  const { status, ending, waitingReason, error } = run;
  if (status === 'succeeded') return { status: 'completed', statusMessage: 'The run has succeeded.' };
  if (status === 'cancelled' || (status === 'cancelling' && ending === 'cancelled'))
    return { status: 'cancelled', statusMessage: 'The run was cancelled.' };
  if (status === 'failed' || status === 'timed_out')
    return { status: 'failed', statusMessage: `${error?.code ?? 'FAILED'}: ${error?.message ?? status}` };
  if (asks) return { status: 'input_required', statusMessage: 'The run waits for an answer.' };
  const reason = waitingReason === null ? '' : ` for ${WAITS[waitingReason]}`;
  return { status: 'working', statusMessage: `The run is ${status}${reason}.` };
}

const WAITS: Record<NonNullable<WorkflowRun['waitingReason']>, string> = {
  plugin: 'a plugin',
  decision: 'the decision of an operator',
  approval: 'an approval, in the studio or by svc workflows approve',
  signal: 'a signal',
  child: 'a child run',
  retry: 'its next attempt',
  time: 'a time',
};

const times = (createdAt: number, updatedAt: number) => ({
  createdAt: new Date(createdAt).toISOString(),
  lastUpdatedAt: new Date(updatedAt).toISOString(),
});

const ttlOf = ({ labels }: WorkflowRun): number => Number(labels[LABELS.ttl]) || 0;

/** Host ids can be longer than labels, so the label holds a hash. */
const ownerLabel = (hostId: string): string =>
  createHash('sha256').update(hostId).digest('base64url').slice(0, 32);
