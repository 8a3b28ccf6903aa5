import type { PartStatus, RunEnding, RunStatus, RunTrigger, WaitReason } from '../../contracts/index.ts';

/** Why a queued run does not run: no capacity, a later start time, or an occupied concurrency key. */
export type QueuedReason = 'capacity' | 'scheduled' | 'concurrency';

/** Fields of a run that change after its start. */
export interface RunProgress {
  status: RunStatus;
  /** True: the run may be claimed. It holds its concurrency key from then until it ends. */
  ready: boolean;
  /** Why the run is queued or waits. */
  reason: QueuedReason | WaitReason | null;
  /** Queue order, highest first: the priority; interrupted runs rank above all others. */
  rank: number;
  /** When the run must be checked again. All times here are epoch ms. */
  wakeAt: number | null;
  deadlineAt: number | null;
  /** Fence token of its owner: the number of a boot. */
  fence: number | null;
  resumeCount: number;
  /** Interruptions of in-flight work since the last finished step. */
  crashes: number;
  /** Like `crashes`, for kills of the service from outside. */
  kills: number;
  /** Work is in flight beside the running steps: an expression in a thread, or a replay of its code. */
  inFlight: boolean;
  /** The status that a run in `cancelling` ends with; kept after its end. */
  ending: RunEnding | null;
  /** Start of the clean-up's time limit, moved forward by each pause; null: the clean-up has not begun. */
  endingAt: number | null;
  /** When the limit of the clean-up was paused; null: it is running. */
  endingHeldAt: number | null;
  /** JSON. */
  output: string | null;
  /** JSON of a RunError. */
  error: string | null;
  startedAt: number | null;
  finishedAt: number | null;
}

/** A run; a background job is a run of one step. */
export interface RunRecord extends RunProgress {
  /** Row number; grows with time. */
  seq: number;
  /** The public id. */
  id: string;
  kind: 'workflow' | 'job';
  tenantId: string;
  /** For a job: its handler. */
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
  /** 0 for a run that a caller started, plus one for each level of children. */
  depth: number;
  hostId: string;
  requestId: string;
  traceId: string;
  /** The span that started it. */
  parentSpanId: string | null;
  /** JSON. */
  input: string;
  createdAt: number;
}

export interface JobRecord {
  /** `build`, or `build:2` for the third combination of a matrix. */
  key: string;
  /** Job name in the definition. */
  jobId: string;
  status: PartStatus;
  /** JSON; null without a matrix. */
  matrix: string | null;
  /** JSON; null until it has ended. */
  outputs: string | null;
  error: string | null;
  startedAt: number | null;
  finishedAt: number | null;
  /** The job is being ended: with its run, by its own time limit, or because a sibling failed. */
  ending: RunEnding | null;
  /** Start of its clean-up time limit, as for a run. */
  endingAt: number | null;
  endingHeldAt: number | null;
}

export interface StepRecord {
  jobKey: string;
  /** Position in the job. */
  index: number;
  /** JSON of the step's definition, for steps found by running workflow code. */
  found: string | null;
  status: PartStatus;
  attempts: number;
  /** Number of failed attempts. */
  failures: number;
  output: string | null;
  error: string | null;
  /** JSON of the wait condition. */
  wait: string | null;
  wakeAt: number | null;
  /** Evaluated key of the attempt in flight. */
  idempotencyKey: string | null;
  readyAt: number | null;
  /** When the first attempt started to work. */
  startedAt: number | null;
  /** When the latest attempt was queued, started to work, and started to wait. */
  queuedAt: number | null;
  attemptAt: number | null;
  waitingAt: number | null;
  finishedAt: number | null;
  /**
   * For finished steps of code: the order in which they ended, from 1 on. A replay reports results in this
   * order.
   */
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
  /** Null: the attempt never started to work. */
  startedAt: number | null;
  /** When it started to wait: for a time, a signal, an approval or a child. */
  waitingAt: number | null;
  finishedAt: number;
}

/** A run event, named as in the API. */
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

/** External input of a run. */
export interface InboxRecord {
  n: number;
  kind: 'signal' | 'approval' | 'decision';
  /** Name of the signal or step. */
  name: string;
  /** JSON. */
  payload: string;
  at: number;
  /** The step that consumed it. */
  takenBy: string | null;
}

export interface DefinitionRecord {
  hash: string;
  workflowId: string;
  /** JSON. */
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
