import type { PartStatus, RunEnding, RunError, StepWait } from '../../../../contracts/index.ts';
import type { JobRecord, JsonValue, LoadedRun, StepRecord } from '../../../../store/ports/index.ts';
import { foundIn } from '../definition/compile-code.ts';
import type { CompiledJob, CompiledStep, CompiledWorkflow } from '../definition/compiled-workflow.ts';
import type { Scope } from '../definition/expressions.ts';
import { isFinal } from '../states.ts';
import type { StepFailure } from '../steps/retry-policy.ts';
import type { StepKind } from '../steps/step-kind.ts';

/** Maximum steps of a run: all are in memory while it is active, and each advance visits all of them. */
export const MOST_STEPS = 10_000;

/** A step in memory: its record and its in-flight work. */
export interface StepPart {
  record: StepRecord;
  step: CompiledStep;
  job: JobPart;
  /** Parsed from the record, like `error`. */
  output: JsonValue;
  error: RunError | null;
  wait: StepWait | null;
  /** Aborts the attempt in flight; null without one. */
  abort: AbortController | null;
  slot: 'none' | 'asked' | 'held';
  /** Withdraws the request for a slot. */
  withdraw: (() => void) | null;
  /** A lookup of its child's end is in flight. */
  looking: boolean;
  /** Processes lost under the step since the run was claimed. */
  losses: number;
  /** Id of the child that was unfinished at its latest lookup. */
  openChild: string | null;
  /** Its plugin was unavailable at the latest attempt, and no work has begun since. */
  wasAway: boolean;
  /** Evaluated input of the current attempt; undefined until a thread has evaluated it. */
  given: Record<string, JsonValue> | StepFailure | undefined;
  /** How its run or job ends this step; a failure of its in-flight work is then ignored. */
  stopped: RunEnding | null;
  /** Replaces the kind's `run`, for steps that only the run's own code can perform. */
  perform: StepKind['run'] | null;
}

export interface JobPart {
  record: JobRecord;
  job: CompiledJob;
  matrix: Record<string, JsonValue>;
  steps: StepPart[];
  outputs: Record<string, JsonValue>;
  /** A step without `continueOnError` failed. */
  failed: boolean;
  /** A replay of its code is in flight or about to start. */
  passing: boolean;
}

/** Matrix combinations of a job; `parts` is null until its dependencies have ended. */
export interface JobGroup {
  job: CompiledJob;
  parts: JobPart[] | null;
}

export type RunParts = Map<string, JobGroup>;

/** Fields of a compiled workflow that determine the parts of its runs. */
export type Outline = Pick<CompiledWorkflow, 'jobs' | 'code'>;

/** Builds the parts of a run from its definition and stored rows. Untouched steps have no row. */
export function partsOf(workflow: Outline, { jobs, steps }: Pick<LoadedRun, 'jobs' | 'steps'>): RunParts {
  const stored = new Map(steps.map((step) => [`${step.jobKey} ${step.index}`, step]));
  const groups: RunParts = new Map();
  for (const job of workflow.jobs) {
    const records = jobs
      .filter(({ jobId }) => jobId === job.id)
      .toSorted((a, b) => place(a.key) - place(b.key));
    groups.set(job.id, {
      job,
      parts:
        records.length === 0 ? null : records.map((record) => jobPart(job, record, stored, workflow.code)),
    });
  }
  return groups;
}

function place(key: string): number {
  return Number(key.split(':')[1] ?? 0);
}

/** Creates a new combination of a job. */
export function newJobPart(job: CompiledJob, key: string, matrix: Record<string, JsonValue> | null): JobPart {
  const record: JobRecord = {
    key,
    jobId: job.id,
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
  return jobPart(job, record, new Map());
}

function jobPart(
  job: CompiledJob,
  record: JobRecord,
  stored: Map<string, StepRecord>,
  code: CompiledWorkflow['code'] = null,
): JobPart {
  const part: JobPart = {
    record,
    job,
    matrix: record.matrix === null ? {} : JSON.parse(record.matrix),
    steps: [],
    outputs: record.outputs === null ? {} : JSON.parse(record.outputs),
    failed: false,
    passing: false,
  };
  part.steps = code
    ? [...stored.values()].map((own) => stepPart(part, code.stepOf(foundIn(own), own.index), own))
    : job.steps.map((step) =>
        stepPart(
          part,
          step,
          stored.get(`${record.key} ${step.index}`) ?? pendingStep(record.key, step.index),
        ),
      );
  part.failed = part.steps.some(isFailure);
  return part;
}

export function stepPart(job: JobPart, step: CompiledStep, record: StepRecord): StepPart {
  const wait: StepWait | null = record.wait === null ? null : JSON.parse(record.wait);
  return {
    record,
    step,
    job,
    output: record.output === null ? null : JSON.parse(record.output),
    error: record.error === null ? null : JSON.parse(record.error),
    wait,
    wasAway: wait?.for === 'plugin',
    abort: null,
    slot: 'none',
    withdraw: null,
    looking: false,
    losses: 0,
    openChild: null,
    given: undefined,
    stopped: null,
    perform: null,
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

/** Whether the step fails its job. */
export function isFailure({ record, step }: StepPart): boolean {
  return (record.status === 'failed' || record.status === 'timed_out') && !step.continueOnError;
}

export function isInAir({ abort, looking, slot }: StepPart): boolean {
  return abort !== null || looking || slot === 'asked';
}

/** Public name of a step: `<job>.<step>`. */
export function stepIdOf({ job, step }: StepPart): string {
  return `${job.record.key}.${step.id}`;
}

/** Returns the result of a job over all combinations; null while one is unfinished. */
export function resultOf({ job, parts }: JobGroup): PartStatus | null {
  if (parts === null || !parts.every(({ record }) => isFinal(record.status))) return null;
  const states = parts.map(({ record }) => record.status);
  const bad = states.find((status) => status === 'failed' || status === 'timed_out');
  if (bad) return job.continueOnError ? 'succeeded' : bad;
  if (states.includes('cancelled')) return 'cancelled';
  return states.every((status) => status === 'skipped') ? 'skipped' : 'succeeded';
}

/** Returns the outputs of a job; for a matrix, merged over successful combinations, later ones winning. */
function outputsOf(group: JobGroup | undefined): Record<string, JsonValue> {
  return Object.assign({}, ...(group?.parts ?? []).map(({ outputs }) => outputs));
}

export function needsScope(groups: RunParts, needs: Iterable<string>): Scope['needs'] {
  return Object.fromEntries(
    [...needs].map((id) => {
      const group = groups.get(id);
      const status = (group && resultOf(group)) ?? 'pending';
      const matrix = group?.job.matrix
        ? { matrix: (group.parts ?? []).map((part) => ({ values: part.matrix, outputs: part.outputs })) }
        : {};
      return [id, { status, outputs: outputsOf(group), ...matrix } as JsonValue];
    }),
  );
}

export function stepsScope({ steps }: JobPart): Scope['steps'] {
  return Object.fromEntries(
    steps
      .filter(({ record }) => record.status !== 'pending')
      .map(({ step, record, output, error }) => [
        step.id,
        { status: record.status, output, error: error as unknown as JsonValue },
      ]),
  );
}

/** Returns every combination of a matrix's lists, the first list varying slowest. */
export function combinations(matrix: Record<string, JsonValue>): Array<Record<string, JsonValue>> {
  let all: Array<Record<string, JsonValue>> = [{}];
  for (const [name, values] of Object.entries(matrix)) {
    if (!Array.isArray(values))
      throw new Error(`matrix.${name} must be a list, not ${JSON.stringify(values)}`);
    all = all.flatMap((one) => values.map((value) => ({ ...one, [name]: value })));
    if (all.length > MOST_COMBINATIONS)
      throw new Error(`the matrix has more than ${MOST_COMBINATIONS} combinations`);
  }
  return all;
}
const MOST_COMBINATIONS = 256;
