import {
  type Job,
  type RunChild,
  type RunHandler,
  type RunJob,
  type RunStep,
  type StepWait,
  WaitReason,
  type WorkflowRun,
} from '../../../../contracts/index.ts';
import type {
  AttemptRecord,
  ChildHead,
  HandlerHead,
  LoadedRun,
  RunRecord,
  StepRecord,
} from '../../../../store/ports/index.ts';
import { foundIn } from '../definition/found-step.ts';
import { isPaused } from '../states.ts';
import { JOB_PREFIX } from '../steps/kinds/handlers.ts';
import { type Outline, partsOf, stepIdOf } from './parts.ts';

const parsed = <T>(json: string | null): T | null => (json === null ? null : JSON.parse(json));

function queuedReason({ status, reason, wakeAt, concurrencyKey, pauseScope }: RunRecord): string | null {
  if (status !== 'queued') return null;
  if (pauseScope !== null) return pauseScope === 'run' ? 'It is paused' : 'Its workflow is paused';
  if (reason === 'scheduled') return `It is planned for ${new Date(wakeAt ?? 0).toISOString()}`;
  if (reason === 'concurrency')
    return `Another run holds the concurrency key "${concurrencyKey?.slice(concurrencyKey.indexOf('\n') + 1)}"`;
  return 'It waits for its turn';
}

/**
 * Returns whether the run can have a wait reason. The status `cancelling` is included, because a run can wait during
 * its clean-up.
 */
const mayWait = ({ status }: RunRecord): boolean => status === 'waiting' || status === 'cancelling';

function waitingReason(run: RunRecord): WaitReason | null {
  return mayWait(run) ? (WaitReason.safeParse(run.reason).data ?? null) : null;
}

export function viewRun(run: RunRecord): WorkflowRun {
  const { id, workflowId, definitionHash, status, ending, trigger, rerunOf, priority, resumeCount } = run;
  return {
    id: id as WorkflowRun['id'],
    workflowId,
    definitionHash,
    status,
    queuedReason: queuedReason(run),
    waitingReason: waitingReason(run),
    ending: status === 'cancelling' ? ending : null,
    trigger,
    startedBy: run.hostId,
    traceId: run.traceId,
    deliveryId: run.deliveryId,
    parentRunId: run.parentId,
    rerunOf,
    ...(isPaused(run) ? { pauseScope: run.pauseScope! } : {}),
    ...(run.handles === null ? {} : { handles: endedRunOf(run.handles) }),
    priority,
    labels: parsed(run.labels) ?? {},
    input: JSON.parse(run.input),
    output: parsed(run.output),
    error: parsed(run.error),
    resumeCount,
    createdAt: run.createdAt,
    runAt: run.runAt,
    startedAt: run.startedAt,
    finishedAt: run.finishedAt,
  };
}

/** Returns the id of the run to whose end a task belongs. */
function endedRunOf(taskKey: string): string {
  return taskKey.slice(0, taskKey.lastIndexOf('/'));
}

/** Returns the jobs of a run, including jobs without a stored record. */
export function viewJobs(loaded: LoadedRun, workflow: Outline): RunJob[] {
  const groups = [...partsOf(workflow, loaded).values()];
  return groups.flatMap(({ job, parts }): RunJob[] => {
    const needs = [...job.needs];
    if (parts === null) {
      const status = loaded.run.finishedAt === null ? 'pending' : 'cancelled';
      const nothing = { matrix: null, outputs: {}, error: null, startedAt: null, finishedAt: null };
      return [{ id: job.id, status, needs, ...nothing }];
    }
    return parts.map(({ record, outputs }) => ({
      id: record.key,
      status: record.status,
      needs,
      matrix: parsed(record.matrix),
      outputs,
      error: parsed(record.error),
      startedAt: record.startedAt,
      finishedAt: record.finishedAt,
    }));
  });
}

/** Returns a child run with the id of its step. The stored id of a repeated step ends with the number of the child. */
export function viewChild({ id, workflowId, status, parentStep }: ChildHead): RunChild {
  return { id: id as RunChild['id'], workflowId, status, stepId: parentStep!.replace(/#\d+$/, '') };
}

export function viewHandler(head: HandlerHead): RunHandler {
  return { ...head, id: head.id as RunHandler['id'] };
}

/** Adds the form and the senders of the signal that the step waits for. */
function withSignalRules(wait: StepWait, { signalSchemas, signalApprovers }: Outline): StepWait {
  if (wait.for !== 'signal' || wait.name === undefined) return wait;
  const schema = signalSchemas?.get(wait.name);
  const roles = signalApprovers?.get(wait.name);
  return {
    ...wait,
    ...(schema ? { form: schema.written as StepWait['form'] } : {}),
    ...(roles ? { approvers: { roles: [...roles] } } : {}),
  };
}

export function viewSteps(
  loaded: LoadedRun,
  workflow: Outline,
  attempts: readonly AttemptRecord[],
): RunStep[] {
  const histories = Map.groupBy(attempts, ({ jobKey, index }) => `${jobKey} ${index}`);
  const jobs = [...partsOf(workflow, loaded).values()].flatMap(({ parts }) => parts ?? []);
  return jobs.flatMap((job) =>
    job.steps.map((part): RunStep => {
      const { record, step, output, error, wait } = part;
      return {
        id: stepIdOf(part),
        jobId: job.record.key,
        name: step.name,
        uses: step.uses,
        ...(workflow.code && record.found ? { branch: foundIn(record).branch } : {}),
        status: record.status,
        attempts: record.attempts,
        output,
        error,
        waitingFor: wait && withSignalRules(wait, workflow),
        wakeAt: record.wakeAt,
        readyAt: record.readyAt,
        queuedAt: record.queuedAt,
        startedAt: record.startedAt,
        attemptStartedAt: record.attemptAt,
        waitingAt: record.waitingAt,
        finishedAt: record.finishedAt,
        history: (histories.get(`${record.jobKey} ${record.index}`) ?? []).map((attempt) => ({
          attempt: attempt.attempt,
          status: attempt.status,
          errorClass: attempt.errorClass as RunStep['history'][number]['errorClass'],
          error: parsed(attempt.error),
          queuedAt: attempt.queuedAt,
          startedAt: attempt.startedAt,
          waitingAt: attempt.waitingAt,
          finishedAt: attempt.finishedAt,
        })),
      };
    }),
  );
}

/** Converts the run of a background job to the API format. `step` is undefined until the run has started. */
export function viewJob(run: RunRecord, step?: Pick<StepRecord, 'attempts' | 'wait'>): Job {
  const { error } = run;
  const failure = parsed<{ details?: { error?: Job['error'] } }>(error);
  return {
    id: run.id as Job['id'],
    handler: run.workflowId.slice(run.workflowId.startsWith(JOB_PREFIX) ? JOB_PREFIX.length : 0),
    status: run.status,
    queuedReason: queuedReason(run),
    waitingFor: mayWait(run) ? parsed(step?.wait ?? null) : null,
    attempts: step?.attempts ?? 0,
    traceId: run.traceId,
    deliveryId: run.deliveryId,
    priority: run.priority,
    input: JSON.parse(run.input),
    result: parsed<{ result?: Job['result'] }>(run.output)?.result ?? null,
    // Unwraps the job's own error from the enclosing error of the run.
    error: failure?.details?.error ?? (failure as Job['error']),
    createdAt: run.createdAt,
    runAt: run.runAt,
    startedAt: run.startedAt,
    finishedAt: run.finishedAt,
  };
}
