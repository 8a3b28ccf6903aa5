import type { RunEnding, RunError, StepWait } from '../../../../contracts/index.ts';
import type {
  InboxRecord,
  JobRecord,
  JsonValue,
  LoadedRun,
  RunRecord,
  StepRecord,
} from '../../../../store/ports/index.ts';
import type { CompiledJob } from '../definition/compiled-workflow.ts';
import { type CodeState, newCodeState } from './code-state.ts';
import type { Failure } from './failure.ts';
import { jobIdOf, newJobRecord, pendingStep, recordsByJob } from './parts.ts';
import type { Program } from './program.ts';

/**
 * In-flight work of a step. `queued` means that it waits for a slot, `evaluating` that a thread evaluates its input,
 * and `looking` that the child run or the plugin is looked up.
 */
export type Flight = 'idle' | 'queued' | 'evaluating' | 'working' | 'looking';

/**
 * Reasons that pause the clean-up timer. `others` stands for an operator's decision, a child that is being cancelled,
 * or a queue.
 */
export type Hold = 'plugin' | 'others' | null;

/** In-memory timer of a clean-up. Its times are stored in the record of the run or job. */
export interface CleanUpTimer {
  /** Whether the limit has passed. It stays true when the clock is set back. */
  isOver: boolean;
  hold: Hold;
}

export interface StepState {
  record: StepRecord;
  /** Output parsed from the record. `error` and `wait` are parsed in the same way. */
  output: JsonValue;
  error: RunError | null;
  wait: StepWait | null;
  flight: Flight;
  /** Whether the time limit of the attempt has passed. */
  isExpired: boolean;
  /** Number of processes lost during this step since the run was claimed. */
  losses: number;
  /** Id of the child run, if the child was unfinished when it was last looked up. */
  openChild: string | null;
  /** Whether the step's plugin was unavailable at the latest attempt, and no work has begun since. */
  wasUnavailable: boolean;
  /**
   * Status that the step gets because its run or job ends; null before the end. While it is set, a failure of the
   * in-flight work is ignored.
   */
  stopped: RunEnding | null;
}

export interface JobState {
  record: JobRecord;
  matrix: Record<string, JsonValue>;
  steps: StepState[];
  outputs: Record<string, JsonValue>;
  /** Whether a step without `continueOnError` failed. */
  failed: boolean;
  cleanUp: CleanUpTimer;
}

/** Result of an expression that a thread evaluated. */
export type Answer = 'pending' | { value: JsonValue } | { failure: Failure };

export interface RunLimits {
  /** Maximum output of a step or run, in characters of JSON. */
  maxOutputChars: number;
  /** Default clean-up limit of an ending run; `cleanUpTimeoutMs` of the definition overrides it. */
  cleanUpMs: number;
  /** Maximum wait of a clean-up for a plugin. */
  maxPluginWaitMs: number;
}

/** A claimed run as plain data. A structured clone of it behaves in the same way. */
export interface RunState {
  run: RunRecord;
  /** Input parsed from the run's record. */
  input: JsonValue;
  /** Matrix combinations by job id, in dependency order; null until the job's dependencies have ended. */
  groups: Map<string, JobState[] | null>;
  /** Fence token of the boot that claimed the run. */
  fence: number;
  /** Whether the run was ready before this start of the service. Its expressions may then have crashed the service. */
  isFromBefore: boolean;
  limits: RunLimits;
  /** `parking` and `ended` mean that only the last write of the run is still to be made. */
  phase: 'active' | 'parking' | 'ended';
  /** Status that the run gets when its clean-up is over; null unless the run was cancelled or timed out. */
  ending: RunEnding | null;
  /** Whether the service is stopping, so that no new work starts. */
  draining: boolean;
  /** Inbox entries that no step has consumed. */
  inbox: InboxRecord[];
  /**
   * Numbers of all inbox entries received so far. They are needed because an entry that was loaded with the run may be
   * announced again.
   */
  seenEntries: Set<number>;
  /** Ids of children that were reported as ended and have not been looked up since. */
  endedChildren: Set<string>;
  /** Ids of the unfinished children of an ending run; null until they are read. */
  openChildren: string[] | null;
  isReadingChildren: boolean;
  /** Ids of children whose cancellation was requested when their step ended. */
  cancelledChildren: Set<string>;
  answers: Map<string, Answer>;
  /** Count of in-flight work outside of steps. If the service crashes during such work, the run becomes a suspect. */
  marks: number;
  /** Whether steps have settled since the run was last advanced. */
  isStale: boolean;
  /** Maps each wall-clock deadline to the same moment on the monotonic clock. */
  deadlines: Map<number, number>;
  cleanUp: CleanUpTimer;
  /** Number of steps of code that have ended. */
  endedSteps: number;
  /** Total output of the steps, in characters of JSON. */
  keptChars: number;
  logLines: number;
  runningJobs: number;
  hasTimer: boolean;
  /** State of the function of a workflow in code; null for other workflows. */
  code: CodeState | null;
}

export interface RunClaim {
  loaded: LoadedRun;
  program: Program;
  fence: number;
  isFromBefore: boolean;
  limits: RunLimits;
  /** Monotonic deadlines that were kept while the run was parked. */
  deadlines: ReadonlyMap<number, number>;
}

/** Builds the state of a claimed run from its stored rows. A step without a stored row is pending. */
export function newRunState({ loaded, program, deadlines, ...claim }: RunClaim): RunState {
  const { run, steps, inbox } = loaded;
  const byJob = recordsByJob(program.workflow, loaded);
  const groups = new Map(
    Array.from(byJob, ([id, jobs]) => [
      id,
      jobs?.map((job) => {
        const state = newJobState(job.record, job.steps.map(newStepState));
        state.failed = state.steps.some((step) => isFailure(program, step));
        return state;
      }) ?? null,
    ]),
  );
  const state: RunState = {
    ...claim,
    run,
    input: JSON.parse(run.input),
    groups,
    phase: 'active',
    ending: run.ending,
    draining: false,
    inbox,
    seenEntries: new Set(inbox.map(({ n }) => n)),
    endedChildren: new Set(),
    openChildren: null,
    isReadingChildren: false,
    cancelledChildren: new Set(),
    answers: new Map(),
    marks: 0,
    isStale: false,
    deadlines: new Map(deadlines),
    cleanUp: { isOver: false, hold: null },
    endedSteps: Math.max(0, ...steps.map(({ endOrder }) => endOrder ?? 0)),
    keptChars: steps.reduce((sum, { output }) => sum + (output?.length ?? 0), 0),
    logLines: 0,
    runningJobs: 0,
    hasTimer: false,
    code: program.workflow.code ? newCodeState(run, steps) : null,
  };
  state.runningJobs = jobsOf(state).filter(({ record }) => record.status === 'running').length;
  return state;
}

/** Creates the state of a new matrix combination of a job. */
export function newJob(job: CompiledJob, key: string, matrix: Record<string, JsonValue> | null): JobState {
  const record = newJobRecord(job, key, matrix);
  return newJobState(
    record,
    job.steps.map(({ index }) => newStepState(pendingStep(key, index))),
  );
}

function newJobState(record: JobRecord, steps: StepState[]): JobState {
  return {
    record,
    matrix: record.matrix === null ? {} : JSON.parse(record.matrix),
    steps,
    outputs: record.outputs === null ? {} : JSON.parse(record.outputs),
    failed: false,
    cleanUp: { isOver: false, hold: null },
  };
}

export function newStepState(record: StepRecord): StepState {
  const wait: StepWait | null = record.wait === null ? null : JSON.parse(record.wait);
  return {
    record,
    output: record.output === null ? null : JSON.parse(record.output),
    error: record.error === null ? null : JSON.parse(record.error),
    wait,
    flight: 'idle',
    isExpired: false,
    losses: 0,
    openChild: null,
    wasUnavailable: wait?.for === 'plugin',
    stopped: null,
  };
}

/** Returns whether the failure of the step fails its job. */
export function isFailure(program: Program, step: StepState): boolean {
  const { status } = step.record;
  return (status === 'failed' || status === 'timed_out') && !program.step(step).continueOnError;
}

/** Returns whether the step has an attempt in flight that an abort can end. */
export const isAtWork = ({ flight }: StepState): boolean => flight === 'working' || flight === 'evaluating';

export function jobsOf({ groups }: RunState): JobState[] {
  const jobs: JobState[] = [];
  for (const group of groups.values()) if (group) jobs.push(...group);
  return jobs;
}

/** Identifies a step within its run: the job key and the step's index. */
export type StepKey = string;

export const stepKeyOf = ({ record: { jobKey, index } }: StepState): StepKey => `${jobKey} ${index}`;

/** Returns the step and its job. Throws an internal error for an unknown key. */
export function stepAt(state: RunState, key: StepKey): { job: JobState; step: StepState } {
  const gap = key.lastIndexOf(' ');
  const job = jobAt(state, key.slice(0, gap));
  return { job, step: stepAtIndex(job, Number(key.slice(gap + 1))) };
}

export function jobAt({ groups }: RunState, key: string): JobState {
  const job = groups.get(jobIdOf(key))?.find(({ record }) => record.key === key);
  if (!job) throw new Error(`The run has no job "${key}".`);
  return job;
}

/**
 * Returns the step with an index. The index can differ from the position, because a rerun of code keeps the indexes of
 * the steps that it takes over.
 */
export function stepAtIndex({ record, steps }: JobState, index: number): StepState {
  const here = steps[index];
  const step = here?.record.index === index ? here : steps.find((one) => one.record.index === index);
  if (!step) throw new Error(`The job "${record.key}" has no step ${index}.`);
  return step;
}
