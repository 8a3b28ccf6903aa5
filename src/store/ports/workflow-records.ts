import type { PartStatus, RunEnding, RunStatus, RunTrigger, WaitReason } from '../../contracts/index.ts';

/** Reason why a queued run does not start yet: no free capacity, a later start time, or an occupied concurrency key. */
export type QueuedReason = 'capacity' | 'scheduled' | 'concurrency';

export interface RunProgress {
  status: RunStatus;
  /** Whether a process is allowed to claim the run. A ready run occupies its concurrency key until the run ends. */
  ready: boolean;
  reason: QueuedReason | WaitReason | null;
  /**
   * Position in the queue. Runs with a higher rank come first. The rank is the priority, but interrupted runs rank
   * above all other runs.
   */
  rank: number;
  /** Time at which the run must be processed again. All times are in epoch ms. */
  wakeAt: number | null;
  deadlineAt: number | null;
  /** Fence token of the run's owner: the number that the owning process got at its start. */
  fence: number | null;
  resumeCount: number;
  /** Number of service crashes while this run had work in flight, since its last finished step. */
  crashes: number;
  /**
   * Number of times that the service was killed while this run had work in flight. A finished step resets the number.
   */
  kills: number;
  /** Whether an expression is being evaluated or workflow code is being replayed. Running steps do not count. */
  inFlight: boolean;
  /** Status that a `cancelling` run gets at its end. The value is kept after the end. */
  ending: RunEnding | null;
  /** Start of the clean-up's time limit, moved forward by the length of each pause. Null before the clean-up begins. */
  endingAt: number | null;
  /** Time at which the time limit of the clean-up was paused, or null if the limit is not paused. */
  endingHeldAt: number | null;
  output: string | null;
  error: string | null;
  startedAt: number | null;
  finishedAt: number | null;
}

/** A run of a workflow. A background job is stored as a run with one step. Input, output and error are JSON. */
export interface RunRecord extends RunProgress {
  /** Row number of the run, which increases with each new run. */
  seq: number;
  /** Id of the run in the API. */
  id: string;
  kind: 'workflow' | 'job';
  tenantId: string;
  /** Id of the workflow, or id of the handler for a background job. */
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
  /** Nesting level of the run. A run that a caller started has level 0. Each level of child runs adds 1. */
  depth: number;
  hostId: string;
  requestId: string;
  traceId: string;
  /** Id of the delivery that started the run or whose handler did. */
  deliveryId: string | null;
  parentSpanId: string | null;
  input: string;
  /**
   * Whether the run or its workflow was paused. Null if the run is not paused. Paused runs are not claimed, except to
   * clean up.
   */
  pauseScope: 'run' | 'workflow' | null;
  /** Labels as a JSON object, or null without labels. */
  labels: string | null;
  /** Numbers of the handlers of the run's end by final status, as JSON such as `{"failed":[0]}`. Null without handlers. */
  endTasks: string | null;
  /** Key of the end task that started the run: the id of the ended run, a slash and the number of the handler. */
  handles: string | null;
  /** Number of handlers in the chain that led to the run. */
  handlerDepth: number;
  createdAt: number;
}

export interface JobRecord {
  /** Key of the job in its run: `build`, or `build:2` for the third combination of a matrix. */
  key: string;
  /** Id of the job in the workflow definition. */
  jobId: string;
  status: PartStatus;
  /** Matrix values of the job as JSON, or null without a matrix. */
  matrix: string | null;
  /** Outputs of the job as JSON, or null until the job has ended. */
  outputs: string | null;
  error: string | null;
  startedAt: number | null;
  finishedAt: number | null;
  /** Status that the job gets at the end of its clean-up. */
  ending: RunEnding | null;
  /** Start of the time limit of the job's clean-up, moved forward by the length of each pause. */
  endingAt: number | null;
  endingHeldAt: number | null;
}

export interface StepRecord {
  jobKey: string;
  index: number;
  /** Definition of the step as JSON, if workflow code created the step. Null for steps of a workflow definition. */
  found: string | null;
  status: PartStatus;
  attempts: number;
  failures: number;
  output: string | null;
  error: string | null;
  /** Condition that the step waits for, as JSON. */
  wait: string | null;
  wakeAt: number | null;
  /** Evaluated idempotency key of the attempt in flight. */
  idempotencyKey: string | null;
  readyAt: number | null;
  /** Time at which the first attempt of the step started to execute. */
  startedAt: number | null;
  /**
   * Time at which the latest attempt was queued. The attempt started to execute at `attemptAt`, and started to wait at
   * `waitingAt`.
   */
  queuedAt: number | null;
  attemptAt: number | null;
  waitingAt: number | null;
  finishedAt: number | null;
  /**
   * Position of the step among the finished steps of workflow code, starting at 1. A replay delivers step results in
   * this order.
   */
  endOrder: number | null;
}

export interface AttemptRecord {
  jobKey: string;
  index: number;
  attempt: number;
  status: PartStatus;
  errorClass: string | null;
  error: string | null;
  queuedAt: number | null;
  /** Time at which the attempt started to execute, or null if the attempt never started. */
  startedAt: number | null;
  /** Time at which the attempt started to wait for an event or a later time. */
  waitingAt: number | null;
  finishedAt: number;
}

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

/** Input that a run receives after its start, such as a signal. */
export interface InboxRecord {
  n: number;
  /** `agent_signal`: a signal by an agent, which only steps take that allow agents. */
  kind: 'signal' | 'agent_signal' | 'approval' | 'decision';
  /** Name of the signal or step that receives the input. */
  name: string;
  payload: string;
  at: number;
  /** Host id of the caller that sent a signal. Null for other kinds, and for signals of earlier versions. */
  sentBy?: string | null;
  /** Id of the step that consumed the input, or null while the input is unused. */
  takenBy: string | null;
}

export interface DefinitionRecord {
  hash: string;
  workflowId: string;
  /** The workflow definition as JSON. */
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
  input: string;
  paused: boolean;
  nextAt: number | null;
  lastAt: number | null;
  lastRunId: string | null;
}

/**
 * Number of crashes after which a run is a suspect. A suspect is likely to crash the service again. `killsPerCrash`
 * kills count as one crash.
 */
export interface SuspectLimit {
  crashes: number;
  killsPerCrash: number;
}
