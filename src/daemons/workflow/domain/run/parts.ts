import type { RunError, StepWait } from '../../../../contracts/index.ts';
import type { JobRecord, JsonValue, LoadedRun, StepRecord } from '../../../../store/ports/index.ts';
import type { CompiledJob, CompiledStep, CompiledWorkflow } from '../definition/compiled-workflow.ts';
import { foundIn } from '../definition/found-step.ts';

/** A stored step together with its compiled definition. */
export interface StepPart {
  record: StepRecord;
  step: CompiledStep;
  job: JobPart;
  /** Parsed `output` of the record. `error` and `wait` are also parsed from the record. */
  output: JsonValue;
  error: RunError | null;
  wait: StepWait | null;
}

export interface JobPart {
  record: JobRecord;
  job: CompiledJob;
  steps: StepPart[];
  outputs: Record<string, JsonValue>;
}

/** All matrix combinations of a job. `parts` is null until the job's dependencies have ended. */
export interface JobGroup {
  job: CompiledJob;
  parts: JobPart[] | null;
}

export type RunParts = Map<string, JobGroup>;

/** Fields of a compiled workflow that determine the jobs and steps of its runs. */
export type Outline = Pick<CompiledWorkflow, 'jobs' | 'code'> &
  Partial<Pick<CompiledWorkflow, 'signalSchemas' | 'signalApprovers'>>;

interface JobRecords {
  record: JobRecord;
  steps: StepRecord[];
}

/** Groups the stored rows of a run by job. A step without a stored row gets a pending record. */
export function recordsByJob(
  { jobs, code }: Outline,
  loaded: Pick<LoadedRun, 'jobs' | 'steps'>,
): Map<string, JobRecords[] | null> {
  const stored = new Map(loaded.steps.map((step) => [`${step.jobKey} ${step.index}`, step]));
  const stepsOf = (key: string, job: CompiledJob): StepRecord[] =>
    code
      ? [...stored.values()]
      : job.steps.map(({ index }) => stored.get(`${key} ${index}`) ?? pendingStep(key, index));
  return new Map(
    jobs.map((job) => {
      const records = loaded.jobs
        .filter(({ jobId }) => jobId === job.id)
        .toSorted((a, b) => combinationOf(a.key) - combinationOf(b.key));
      const groups = records.map((record) => ({ record, steps: stepsOf(record.key, job) }));
      return [job.id, groups.length === 0 ? null : groups];
    }),
  );
}

/** Combines a workflow definition with the stored rows of a run into jobs and steps. */
export function partsOf(workflow: Outline, loaded: Pick<LoadedRun, 'jobs' | 'steps'>): RunParts {
  const byJob = recordsByJob(workflow, loaded);
  return new Map(
    workflow.jobs.map((job) => {
      const parts = byJob.get(job.id)!;
      return [job.id, { job, parts: parts?.map((records) => jobPart(workflow, job, records)) ?? null }];
    }),
  );
}

export function stepsOf(parts: RunParts): StepPart[] {
  return [...parts.values()].flatMap((group) => group.parts ?? []).flatMap(({ steps }) => steps);
}

function jobPart({ code }: Outline, job: CompiledJob, { record, steps }: JobRecords): JobPart {
  const part: JobPart = {
    record,
    job,
    steps: [],
    outputs: record.outputs === null ? {} : JSON.parse(record.outputs),
  };
  part.steps = steps.map((own) => ({
    record: own,
    step: code ? code.stepOf(foundIn(own), own.index) : job.steps[own.index]!,
    job: part,
    output: own.output === null ? null : JSON.parse(own.output),
    error: own.error === null ? null : JSON.parse(own.error),
    wait: own.wait === null ? null : JSON.parse(own.wait),
  }));
  return part;
}

/** Returns the job id of a job key. A matrix job has one key per combination, such as `build:2` for the job `build`. */
export function jobIdOf(key: string): string {
  const colon = key.indexOf(':');
  return colon === -1 ? key : key.slice(0, colon);
}

function combinationOf(key: string): number {
  return Number(key.split(':')[1] ?? 0);
}

export function newJobRecord(
  { id }: CompiledJob,
  key: string,
  matrix: Record<string, JsonValue> | null,
): JobRecord {
  return {
    key,
    jobId: id,
    status: 'pending',
    matrix: matrix && JSON.stringify(matrix),
    outputs: null,
    error: null,
    startedAt: null,
    finishedAt: null,
    ending: null,
    endingAt: null,
    endingHeldAt: null,
  };
}

export function pendingStep(jobKey: string, index: number): StepRecord {
  return {
    jobKey,
    index,
    found: null,
    status: 'pending',
    attempts: 0,
    failures: 0,
    output: null,
    error: null,
    wait: null,
    wakeAt: null,
    idempotencyKey: null,
    readyAt: null,
    startedAt: null,
    queuedAt: null,
    attemptAt: null,
    waitingAt: null,
    finishedAt: null,
    endOrder: null,
  };
}

/** Returns the public name of a step, in the form `<job>.<step>`. */
export function stepIdOf({ record, step }: Pick<StepPart, 'record' | 'step'>): string {
  return `${record.jobKey}.${step.id}`;
}
