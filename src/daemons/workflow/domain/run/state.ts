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
 * In-flight work of a step. `queued`: for a slot. `evaluating`: its input, in a thread. `looking`: at its child or its
 * plugin.
 */
export type Flight = 'idle' | 'queued' | 'evaluating' | 'working' | 'looking';

/** Waits that pause the clean-up timer. `others`: an operator's decision, children being cancelled, or a queue. */
export type Hold = 'plugin' | 'others' | null;

/** Timer of a clean-up in memory; its times are in the record of the run or job. */
export interface CleanUpTimer {
  /** Stays true when the clock is set back. */
  isOver: boolean;
  hold: Hold;
}

export interface StepState {
  record: StepRecord;
  /** Parsed from the record, like `error` and `wait`. */
  output: JsonValue;
  error: RunError | null;
  wait: StepWait | null;
  flight: Flight;
  /** The time limit of the attempt has passed. */
  isExpired: boolean;
  /** Processes lost under the step since the run was claimed. */
  losses: number;
  /** Id of the child that was unfinished at its latest lookup. */
  openChild: string | null;
  /** The plugin of the step was unavailable at the latest attempt, and no work has begun since. */
  wasAway: boolean;
  /** How the end of the run or job ends this step; a failure of in-flight work is then ignored. */
  stopped: RunEnding | null;
}

export interface JobState {
  record: JobRecord;
  matrix: Record<string, JsonValue>;
  steps: StepState[];
  outputs: Record<string, JsonValue>;
  /** A step without `continueOnError` failed. */
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

/** A claimed run as plain data: a structured clone of it continues in the same way. */
export interface RunState {
  run: RunRecord;
  /** Parsed from the record. */
  input: JsonValue;
  /** Matrix combinations by job id, in dependency order; null until the dependencies of the job have ended. */
  groups: Map<string, JobState[] | null>;
  /** Fence token of the boot that claimed the run. */
  fence: number;
  /** The run was ready before this boot, so an earlier boot may have crashed on its expressions. */
  isFromBefore: boolean;
  limits: RunLimits;
  /** `parking` and `ended`: only its last write is due. */
  phase: 'active' | 'parking' | 'ended';
  /** How the run is being ended from outside; only its clean-up continues. */
  ending: RunEnding | null;
  /** No new work starts. */
  draining: boolean;
  /** Unused inbox entries. */
  inbox: InboxRecord[];
  /** Inbox entries seen so far: an entry loaded with the run may be announced again after a step consumed it. */
  seenEntries: Set<number>;
  /** Children reported as ended and not looked up since. */
  endedChildren: Set<string>;
  /** Unfinished children of an ending run; null until they are read. */
  openChildren: string[] | null;
  isReadingChildren: boolean;
  /** Children whose cancellation was requested with their step. */
  cancelledChildren: Set<string>;
  answers: Map<string, Answer>;
  /** Work in flight beside the steps: if the service crashes during it, the run is a suspect. */
  marks: number;
  /** Steps have settled since the run was last advanced. */
  isStale: boolean;
  /** Monotonic deadlines by wall-clock deadline. */
  deadlines: Map<number, number>;
  cleanUp: CleanUpTimer;
  /** Steps of code that have ended. */
  endedSteps: number;
  /** Total output of the steps, in characters of JSON. */
  keptChars: number;
  logLines: number;
  runningJobs: number;
  /** Whether a wake-up is set. */
  hasTimer: boolean;
  /** For the function of a workflow in code. */
  code: CodeState | null;
}

export interface RunClaim {
  loaded: LoadedRun;
  program: Program;
  fence: number;
  isFromBefore: boolean;
  limits: RunLimits;
  /** Monotonic deadlines, kept from before the run was parked. */
  deadlines: ReadonlyMap<number, number>;
}

/** Builds the state of a claimed run from its stored rows. Untouched steps have no row. */
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

/** Creates a new combination of a job. */
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
    wasAway: wait?.for === 'plugin',
    stopped: null,
  };
}

/** Whether the step fails its job. */
export function isFailure(program: Program, step: StepState): boolean {
  const { status } = step.record;
  return (status === 'failed' || status === 'timed_out') && !program.step(step).continueOnError;
}

/** Whether an attempt is in flight, which an abort ends. */
export const isAtWork = ({ flight }: StepState): boolean => flight === 'working' || flight === 'evaluating';

export function jobsOf({ groups }: RunState): JobState[] {
  const jobs: JobState[] = [];
  for (const group of groups.values()) if (group) jobs.push(...group);
  return jobs;
}

/** Identifies a step within its run. */
export type StepKey = string;

export const stepKeyOf = ({ record: { jobKey, index } }: StepState): StepKey => `${jobKey} ${index}`;

/** Returns the step and its job. Throws for an unknown key: an internal error. */
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

/** Steps that a rerun of code took over keep their index, so it can differ from the position. */
export function stepAtIndex({ record, steps }: JobState, index: number): StepState {
  const here = steps[index];
  const step = here?.record.index === index ? here : steps.find((one) => one.record.index === index);
  if (!step) throw new Error(`The job "${record.key}" has no step ${index}.`);
  return step;
}
