import type { PartStatus, RunEnding, RunStatus, RunTrigger, WaitReason } from '../../contracts/index.ts';

/** Why a queued run does not run: no room yet, not yet its time, or its concurrency key is taken. */
export type QueuedReason = 'capacity' | 'scheduled' | 'concurrency';

/** What of a run changes after its start. */
export interface RunProgress {
  status: RunStatus;
  /** True: it may be claimed. It then holds its concurrency key, as every started run does until it ends. */
  ready: boolean;
  /** Why it is queued, or waits. */
  reason: QueuedReason | WaitReason | null;
  /** Order in the queue, highest first: the priority, above all of them for what was interrupted. */
  rank: number;
  /** When it must be looked at again. Epoch ms, as all times here. */
  wakeAt: number | null;
  deadlineAt: number | null;
  /** Who holds it: the number of a boot. */
  fence: number | null;
  resumeCount: number;
  /** Interruptions of its work in flight since a step finished last. */
  crashes: number;
  /** The same for ends of the service from outside. */
  kills: number;
  /** Something of it is in flight beside its running steps: an expression in a thread, a pass of its code. */
  inFlight: boolean;
  /** Of a run in `cancelling`, and after it: what it is, or was, being ended as. */
  ending: RunEnding | null;
  /** When the limit of its clean-up began to count, moved on by each time in which it stood still; null: not yet. */
  endingAt: number | null;
  /** Since when that limit stands still; null: it counts. */
  endingHeldAt: number | null;
  /** JSON. */
  output: string | null;
  /** JSON of a RunError. */
  error: string | null;
  startedAt: number | null;
  finishedAt: number | null;
}

/** A run, or a background job: that is a run of one step. */
export interface RunRecord extends RunProgress {
  /** Its number in the database; grows with time. */
  seq: number;
  /** What the outside knows it by. */
  id: string;
  kind: 'workflow' | 'job';
  tenantId: string;
  /** Of a job: its handler. */
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
  /** 0 for what a caller started, one more for each level of children. */
  depth: number;
  hostId: string;
  requestId: string;
  traceId: string;
  /** The span it was started from. */
  parentSpanId: string | null;
  /** JSON. */
  input: string;
  createdAt: number;
}

export interface JobRecord {
  /** `build`, or `build:2` for the third combination of a matrix. */
  key: string;
  /** Its name in the definition. */
  jobId: string;
  status: PartStatus;
  /** JSON; null without a matrix. */
  matrix: string | null;
  /** JSON; null until it ended. */
  outputs: string | null;
  error: string | null;
  startedAt: number | null;
  finishedAt: number | null;
  /** It is being ended: with its run, by its own time limit, or because a sibling failed. */
  ending: RunEnding | null;
  /** The limit of its clean-up, as that of a run. */
  endingAt: number | null;
  endingHeldAt: number | null;
}

export interface StepRecord {
  jobKey: string;
  /** Its place in the job. */
  index: number;
  /** JSON of what it is, where no definition says so: its run's code came to it. */
  found: string | null;
  status: PartStatus;
  attempts: number;
  /** Those of the attempts that failed. */
  failures: number;
  output: string | null;
  error: string | null;
  /** JSON of what it waits for. */
  wait: string | null;
  wakeAt: number | null;
  /** Of the attempt in the air, evaluated. */
  idempotencyKey: string | null;
  readyAt: number | null;
  /** When the work of the first attempt began. */
  startedAt: number | null;
  /** When the latest attempt was queued, its work began, and it began to wait for something outside. */
  queuedAt: number | null;
  attemptAt: number | null;
  waitingAt: number | null;
  finishedAt: number | null;
  /** Of a step of code that has ended: its place in the order in which they ended, from 1 on. A replay tells them in it. */
  endOrder: number | null;
}

/** One finished try of a step. */
export interface AttemptRecord {
  jobKey: string;
  index: number;
  attempt: number;
  status: PartStatus;
  errorClass: string | null;
  error: string | null;
  queuedAt: number | null;
  /** Null: its work never began. */
  startedAt: number | null;
  /** When it began to wait for something outside: a time, a signal, an approval, a child. */
  waitingAt: number | null;
  finishedAt: number;
}

/** What happened, in the words of the API. */
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

/** What came for a run from outside. */
export interface InboxRecord {
  n: number;
  kind: 'signal' | 'approval' | 'decision';
  /** The signal, or the step. */
  name: string;
  /** JSON. */
  payload: string;
  at: number;
  /** The step that used it. */
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
