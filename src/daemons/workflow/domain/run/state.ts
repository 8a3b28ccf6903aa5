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
 * In-flight work of a step. `queued` is a wait for a slot. `withdrawing` is the withdrawal of the slot request.
 * `evaluating` is an evaluation in a worker thread. `looking` is a lookup of the child run or the plugin.
 */
export type Flight = 'idle' | 'queued' | 'withdrawing' | 'evaluating' | 'working' | 'looking';

/**
 * Reason to pause the clean-up timer. `others` covers waits for an operator's decision, for a child that is being
 * cancelled, for a queue, and for the end of a drain.
 */
export type Hold = 'plugin' | 'others' | null;

/** In-memory state of a clean-up timer. The start and pause times are stored in the record of the run or job. */
export interface CleanUpTimer {
  /** Whether the clean-up limit has passed. The value stays true even if the clock is set back. */
  isOver: boolean;
  hold: Hold;
}

export interface StepState {
  record: StepRecord;
  /** Parsed `output` of the record. `error` and `wait` are also parsed from the record. */
  output: JsonValue;
  error: RunError | null;
  wait: StepWait | null;
  flight: Flight;
  /** Whether the time limit of the attempt has passed. */
  isExpired: boolean;
  /** Number of processes that ended unexpectedly during this step since the run was claimed. */
  losses: number;
  /** Id of the child run if the latest lookup found the child unfinished. Otherwise null. */
  openChild: string | null;
  /** Whether the step's plugin was unavailable at the latest attempt. Reset when work of the step begins. */
  wasUnavailable: boolean;
  /**
   * End status of a step that is stopped because its run or job ends. Null for other steps. After a stop, failures of
   * in-flight work are ignored.
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

/** Result of an expression that a worker thread evaluates, or `pending` until the evaluation has ended. */
export type Answer = 'pending' | { value: JsonValue } | { failure: Failure };

export interface RunLimits {
  /** Maximum output of a step or run, in characters of JSON. */
  maxOutputChars: number;
  /** Default time limit for the clean-up of a run. The definition can override the default with `cleanUpTimeoutMs`. */
  cleanUpMs: number;
  /** Maximum time that a clean-up waits for an unavailable plugin. */
  maxPluginWaitMs: number;
}

/** State of a claimed run as plain data, so that the state can be cloned. */
export interface RunState {
  run: RunRecord;
  /** Parsed `input` of the run record. */
  input: JsonValue;
  /**
   * Matrix combinations by job id, in dependency order. A value is null until the dependencies of the job have ended.
   */
  groups: Map<string, JobState[] | null>;
  /** Fence token of the service process that claimed the run. */
  fence: number;
  /**
   * Whether the run was ready before the service started. An expression of such a run might have crashed the previous
   * service process.
   */
  isFromBefore: boolean;
  limits: RunLimits;
  /** In the phases `parking` and `ended`, only the last write before the run leaves memory is outstanding. */
  phase: 'active' | 'parking' | 'ended';
  /** Status that the run gets after its clean-up. Null if the run was neither cancelled nor timed out. */
  ending: RunEnding | null;
  /** Whether the service is stopping or the run is paused, so that no new work starts. */
  draining: boolean;
  /** Inbox entries that no step has consumed. */
  inbox: InboxRecord[];
  /**
   * Numbers of all inbox entries received so far. An entry that was loaded with the run can be announced again, so
   * repeats are ignored.
   */
  seenEntries: Set<number>;
  /** Ids of child runs that were reported as ended and not yet looked up afterwards. */
  endedChildren: Set<string>;
  /** Ids of the unfinished children of an ending run. Null until the ids are read from the store. */
  openChildren: string[] | null;
  isReadingChildren: boolean;
  /** Ids of child runs whose cancellation was requested because their step ended. Each child is cancelled only once. */
  cancelledChildren: Set<string>;
  answers: Map<string, Answer>;
  /**
   * Number of in-flight operations outside of steps. A service crash counts against the run while this number is above
   * zero.
   */
  marks: number;
  /** Whether steps have settled since the run was last advanced. */
  isStale: boolean;
  /** Maps each wall-clock deadline to the same moment on the monotonic clock. */
  deadlines: Map<number, number>;
  cleanUp: CleanUpTimer;
  /** Number of ended steps, for workflows written in code. */
  endedSteps: number;
  /** Total output of the steps, in characters of JSON. */
  keptChars: number;
  logLines: number;
  runningJobs: number;
  hasTimer: boolean;
  /** State of the function of a workflow written in code, or null for other workflows. */
  code: CodeState | null;
}

export interface RunClaim {
  loaded: LoadedRun;
  program: Program;
  fence: number;
  isFromBefore: boolean;
  limits: RunLimits;
  /** Monotonic deadlines that stayed in memory while the run itself was unloaded. */
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

/** Returns whether the step has failed and its failure fails the job. */
export function isFailure(program: Program, step: StepState): boolean {
  const { status } = step.record;
  return (status === 'failed' || status === 'timed_out') && !program.step(step).continueOnError;
}

/** Returns whether the step has an attempt in flight that an abort can end. */
export const isAtWork = ({ flight }: StepState): boolean => flight === 'working' || flight === 'evaluating';

/** Returns whether the step has an open slot request, even if the request is being withdrawn. */
export const hasSlotRequest = ({ flight }: StepState): boolean =>
  flight === 'queued' || flight === 'withdrawing';

export function jobsOf({ groups }: RunState): JobState[] {
  const jobs: JobState[] = [];
  for (const group of groups.values()) if (group) jobs.push(...group);
  return jobs;
}

/** Key of a step within its run, in the form `<job key> <step index>`. */
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
 * Returns the step with this index. A rerun of a workflow in code keeps the original indexes, so the index can differ
 * from the array position.
 */
export function stepAtIndex({ record, steps }: JobState, index: number): StepState {
  const here = steps[index];
  const step = here?.record.index === index ? here : steps.find((one) => one.record.index === index);
  if (!step) throw new Error(`The job "${record.key}" has no step ${index}.`);
  return step;
}
