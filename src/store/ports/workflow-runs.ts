import type { RunStatus, WaitReason } from '../../contracts/index.ts';
import type { HourRange, RunHourCounts } from './hour-counts.ts';
import type {
  AttemptRecord,
  DefinitionRecord,
  EventRecord,
  InboxRecord,
  JobRecord,
  LogLineRecord,
  RunProgress,
  RunRecord,
  StepRecord,
} from './workflow-records.ts';

export type NewRun = Omit<RunRecord, 'seq' | 'pauseScope' | keyof RunProgress> & {
  deadlineAt: number | null;
};

/** Handling of a run whose concurrency key is occupied. By default, the run waits until the key is free. */
export type ConcurrencyStrategy = 'queue' | 'cancel-running' | 'replace-queued' | 'reject';

export interface StartOptions {
  /** Definition of the workflow, written only if the store does not contain the definition yet. */
  definition: DefinitionRecord;
  /**
   * A second start with the same key returns the first run. A different `digest` shows that the second request differs
   * from the first.
   */
  idempotency?: { key: string; digest: string; expiresAt: number } | undefined;
  /** Limits of the tenant, which do not apply to child runs. */
  limits?: { concurrent: number | null; perDay: number | null; perMonth: number | null } | undefined;
  /** Day in UTC whose quota counts the run, such as `2030-01-31`. */
  day: string;
  strategy?: ConcurrencyStrategy | undefined;
  /** Finished jobs, steps and attempts that a re-run copies from the earlier run. */
  parts?: { jobs: JobRecord[]; steps: StepRecord[]; attempts: AttemptRecord[] } | undefined;
}

/** The run that was started with an idempotency key. `run` is undefined once the run was deleted. */
export interface KeyedRun {
  digest: string;
  run: RunRecord | undefined;
}

export type StartResult =
  /**
   * `supersedes` lists the runs that the concurrency strategy cancels. If the process dies before these runs are
   * cancelled, `BootStore.leftToCancel` returns the remaining runs.
   */
  | { outcome: 'started'; run: RunRecord; supersedes: string[] }
  /** An earlier start with the same idempotency key or parent step has already created the run. */
  | { outcome: 'known'; run: RunRecord }
  /** The idempotency key was already used for a request with another digest. */
  | ({ outcome: 'different' } & KeyedRun)
  | { outcome: 'over'; limit: 'concurrent' | 'perDay' | 'perMonth' | 'key' };

/**
 * Changes of a run in one transaction. If `expect.fence` is null, the write claims the run. A claim succeeds only if
 * the run has no owner and the claiming process is alive.
 */
export interface RunWrite {
  seq: number;
  expect: { fence: number | null; status: RunStatus };
  /** Changed fields of the run, or null if only its jobs, steps or events changed. */
  run: RunProgress | null;
  jobs: JobRecord[];
  steps: StepRecord[];
  attempts: AttemptRecord[];
  events: EventRecord[];
  logs: LogLineRecord[];
  /** Consumed inbox entries, each with the id of the step that consumed the entry. */
  taken: Array<{ n: number; by: string }>;
  /**
   * Number of the latest inbox entry that the owner has read. If later entries exist, a waiting run becomes due at
   * once.
   */
  inboxSeen: number;
  /** Id of the parent run, if one of its steps waits for the end of this run. */
  wakeParent: string | null;
  at: number;
}

export interface WriteResult {
  /** Whether the store was changed. False if another owner has the run. */
  applied: boolean;
  /** Runs that became ready because this write released their concurrency key. */
  promoted: RunRecord[];
}

/** The rows that the engine needs to continue a run, with large values included. */
export interface LoadedRun {
  run: RunRecord;
  jobs: JobRecord[];
  steps: StepRecord[];
  /** Unused inbox entries, oldest first. */
  inbox: InboxRecord[];
}

export interface RunFilter {
  kind?: 'workflow' | 'job' | undefined;
  /** Statuses of matching runs. A run matches if it has one of them. */
  status?: readonly RunStatus[] | undefined;
  /** Wait reason of matching runs, which are waiting or `cancelling`. */
  waitingReason?: WaitReason | undefined;
  /** Matches only unfinished runs that are paused, or whose workflow is paused. */
  paused?: true | undefined;
  workflowId?: string | undefined;
  /** Labels in the form `key:value`. A run matches if it has all of them. */
  labels?: readonly string[] | undefined;
  /** Range of the creation time. `to` is exclusive. */
  from?: number | undefined;
  to?: number | undefined;
  /** Text that must occur in the input of the run, or the id of a run. */
  search?: string | undefined;
  before?: number | undefined;
  limit: number;
}

/** Fields of a run that need no large values. */
export type RunHead = Pick<
  RunRecord,
  'seq' | 'id' | 'status' | 'workflowId' | 'parentId' | 'createdAt' | 'finishedAt'
>;

export type ChildHead = Pick<RunRecord, 'id' | 'status' | 'workflowId' | 'parentStep'>;

/** Run that the end of another run started. */
export type HandlerHead = Pick<RunRecord, 'id' | 'status' | 'workflowId'>;

export interface Numbered<Item> {
  id: number;
  item: Item;
}

/** Runs with their jobs, steps, events and logs. A write is durable when its promise settles. */
export interface RunStore {
  start(run: NewRun, options: StartOptions): Promise<StartResult>;
  /** Returns the run that was started with the idempotency key. Returns undefined if the key is unused or expired. */
  keyed(tenantId: string, key: string, now: number): Promise<KeyedRun | undefined>;
  write(write: RunWrite): Promise<WriteResult>;
  load(seq: number): Promise<LoadedRun | undefined>;
  /** Finds a run of the tenant by its id. If `tenantId` is null, finds runs of all tenants. */
  find(tenantId: string | null, id: string): Promise<RunRecord | undefined>;
  /** Returns the given runs that have ended, regardless of their tenants. */
  finished(ids: readonly string[]): Promise<RunRecord[]>;
  /**
   * Returns a page of runs, newest first. Each call reads a bounded number of rows, so a page can be empty although
   * more runs match. The next page starts at `next`.
   */
  list(tenantId: string, filter: RunFilter): Promise<{ runs: RunRecord[]; next: number | null }>;
  /** Returns the first runs and jobs of a trace, oldest first. */
  ofTrace(tenantId: string, traceId: string, limit: number): Promise<RunRecord[]>;
  /** Counts the workflow runs that were created in the hours from `from` to `to`. Hours without runs are missing. */
  countByHour(tenantId: string, range: HourRange): Promise<RunHourCounts[]>;
  /** Returns the same page as `list`, without inputs and outputs. */
  heads(tenantId: string, filter: RunFilter): Promise<{ runs: RunHead[]; next: number | null }>;
  attempts(seq: number): Promise<AttemptRecord[]>;
  events(seq: number, after: number, limit: number): Promise<Array<Numbered<EventRecord>>>;
  logs(seq: number, after: number, limit: number, step?: string): Promise<Array<Numbered<LogLineRecord>>>;
  /** Returns the log lines before the id `before`, newest first. */
  latestLogs(seq: number, before: number, limit: number): Promise<Array<Numbered<LogLineRecord>>>;
  /** Returns child runs by the ids of the steps that started them. Child runs that have ended are included. */
  children(id: string, limit: number): Promise<ChildHead[]>;
  /** Returns the runs that the end of the run started. */
  handlers(id: string): Promise<HandlerHead[]>;
  /** Returns the ids of child runs that have not ended. */
  openChildren(id: string): Promise<string[]>;
  /**
   * Adds an inbox entry and wakes the run. Returns the fence of the run's owner, if there is one. Returns `full` if the
   * inbox has reached a limit. Returns `taken` if `once` is set and an equal unused entry exists.
   */
  deliver(
    seq: number,
    entry: Omit<InboxRecord, 'n' | 'takenBy'>,
    options: {
      once: boolean;
      most: number;
      mostBytes: number;
      /** Fence of the caller, which gets no notice about its own runs. */
      by?: number | undefined;
      repeat?: { key: string; digest: string } | undefined;
    },
  ): Promise<
    | { outcome: 'delivered'; n: number; owner?: number | undefined }
    | { outcome: 'ended' | 'taken' | 'full' | 'repeated' | 'different' }
  >;
  wasDelivered(seq: number, key: string): Promise<boolean>;
  /** Starts the clean-up of a run to be cancelled. Returns false if the run has an owner or has ended. */
  beginCleanUp(seq: number, at: number): Promise<boolean>;
  /**
   * Cancels a run that has no owner, together with its jobs and steps. `cancelled` is false if the run has an owner or
   * has ended.
   */
  cancelIdle(seq: number, at: number): Promise<{ cancelled: boolean; promoted: RunRecord[] }>;
}
