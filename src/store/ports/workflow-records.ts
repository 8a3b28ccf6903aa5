import type { PartStatus, RunEnding, RunStatus, RunTrigger, WaitReason } from '../../contracts/index.ts';

/** Why a queued run does not run: no capacity, a later start time, or an occupied concurrency key. */
export type QueuedReason = 'capacity' | 'scheduled' | 'concurrency';

/** Fields of a run that change after its start. */
export interface RunProgress {
  status: RunStatus;
  /** True when the run may be claimed. A run holds its concurrency key from then until it ends. */
  ready: boolean;
  /** Why the run is queued or waits. */
  reason: QueuedReason | WaitReason | null;
  /** Queue order, highest first. The rank is the run's priority; interrupted runs rank above all others. */
  rank: number;
  /** When the run must be checked again. All times here are epoch ms. */
  wakeAt: number | null;
  deadlineAt: number | null;
  /** Fence token of the run's owner: the number of a boot. */
  fence: number | null;
  resumeCount: number;
  /** Interruptions of in-flight work since the last finished step. */
  crashes: number;
  /** Number of kills of the service from outside with work of this run in flight, since the last finished step. */
  kills: number;
  /** True when an expression is evaluated or the workflow code is replayed, in addition to running steps. */
  inFlight: boolean;
  /** The status that a run in `cancelling` ends with; kept after its end. */
  ending: RunEnding | null;
  /** Start of the clean-up's time limit, moved forward by each pause; null before the clean-up begins. */
  endingAt: number | null;
  /** When the time limit of the clean-up was paused; null while it is not paused. */
  endingHeldAt: number | null;
  /** Output of the run as JSON. */
  output: string | null;
  /** The run's error, as JSON of a RunError. */
  error: string | null;
  startedAt: number | null;
  finishedAt: number | null;
}

/** A run; a background job is a run of one step. */
export interface RunRecord extends RunProgress {
  /** Row number of the run, which increases with each new run. */
  seq: number;
  /** Public id of the run. */
  id: string;
  kind: 'workflow' | 'job';
  tenantId: string;
  /** Id of the workflow; for a background job, the id of its handler. */
  workflowId: string;
  definitionHash: string;
  priority: number;
  runAt: number | null;
  concurrencyKey: string | null;
  concurrencyLimit: number | null;
  trigger: RunTrigger;
  parentId: string | null;
  parentStep: string | null;
  rerunOf: string | null;
  /** Nesting level: 0 for a run that a caller started, one more for each level of child runs. */
  depth: number;
  hostId: string;
  requestId: string;
  traceId: string;
  /** Id of the span that started the run. */
  parentSpanId: string | null;
  /** JSON. */
  input: string;
  createdAt: number;
}

export interface JobRecord {
  /** Job key: `build`, or `build:2` for the third combination of a matrix. */
  key: string;
  /** Name of the job in the workflow definition. */
  jobId: string;
  status: PartStatus;
  /** Matrix values of the job as JSON; null without a matrix. */
  matrix: string | null;
  /** Outputs of the job as JSON; null until the job has ended. */
  outputs: string | null;
  error: string | null;
  startedAt: number | null;
  finishedAt: number | null;
  /** Status that the ending job gets, set when its run is cancelled, its own time limit passes or a sibling fails. */
  ending: RunEnding | null;
  /** Start of the job's clean-up time limit, with the same meaning as in RunProgress. */
  endingAt: number | null;
  endingHeldAt: number | null;
}

export interface StepRecord {
  jobKey: string;
  /** Position of the step in its job. */
  index: number;
  /** Definition of the step as JSON, for steps that were found by running workflow code. */
  found: string | null;
  status: PartStatus;
  attempts: number;
  /** Number of failed attempts. */
  failures: number;
  output: string | null;
  error: string | null;
  /** Wait condition of the step as JSON. */
  wait: string | null;
  wakeAt: number | null;
  /** Evaluated idempotency key of the attempt in flight. */
  idempotencyKey: string | null;
  readyAt: number | null;
  /** When the first attempt of the step started to execute. */
  startedAt: number | null;
  /** When the latest attempt was queued, started to execute, and started to wait. */
  queuedAt: number | null;
  attemptAt: number | null;
  waitingAt: number | null;
  finishedAt: number | null;
  /** Order in which finished steps of workflow code ended, starting at 1. A replay reports results in this order. */
  endOrder: number | null;
}

/** One finished attempt of a step. */
export interface AttemptRecord {
  jobKey: string;
  index: number;
  attempt: number;
  status: PartStatus;
  errorClass: string | null;
  error: string | null;
  queuedAt: number | null;
  /** When the attempt started to execute; null if it never did. */
  startedAt: number | null;
  /** When the attempt started to wait for a time, a signal, an approval or a child run. */
  waitingAt: number | null;
  finishedAt: number;
}

/** A run event, with the field names of the API. */
export interface EventRecord {
  at: number;
  type: string;
  job?: string;
  step?: string;
  data?: Record<string, unknown>;
}

export interface LogLineRecord {
  at: number;
  level: string;
  message: string;
  job?: string;
  step?: string;
}

/** External input of a run, such as a signal. */
export interface InboxRecord {
  n: number;
  kind: 'signal' | 'approval' | 'decision';
  /** Name of the signal or step that the input is for. */
  name: string;
  /** Payload of the input as JSON. */
  payload: string;
  at: number;
  /** Id of the step that consumed the input; null while the input is unused. */
  takenBy: string | null;
}

export interface DefinitionRecord {
  hash: string;
  workflowId: string;
  /** Workflow definition as JSON. */
  body: string;
}

export interface ScheduleRecord {
  id: string;
  tenantId: string;
  workflowId: string;
  cron: string;
  timezone: string;
  overlap: 'skip' | 'queue' | 'allow';
  catchUp: 'none' | 'latest' | 'all';
  /** JSON. */
  input: string;
  paused: boolean;
  nextAt: number | null;
  lastAt: number | null;
  lastRunId: string | null;
}
