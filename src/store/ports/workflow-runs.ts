import type { RunStatus, WaitReason } from '../../contracts/index.ts';
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

/** A run to be started, without the fields that the store sets. */
export type NewRun = Omit<RunRecord, 'seq' | keyof RunProgress> & { deadlineAt: number | null };

/** Strategy for a run whose concurrency key is occupied. By default, the run waits. */
export type ConcurrencyStrategy = 'queue' | 'cancel-running' | 'replace-queued' | 'reject';

export interface StartOptions {
  /** Definition of the workflow, written only if the store does not contain it yet. */
  definition: DefinitionRecord;
  /**
   * A second start with the same key returns the first run. `digest` identifies the request, so that a different
   * request with that key is detected.
   */
  idempotency?: { key: string; digest: string; expiresAt: number } | undefined;
  /** The tenant's limits. Child runs are started without limits. */
  limits?: { concurrent: number | null; perDay: number | null; perMonth: number | null } | undefined;
  /** UTC day whose quota counts the run, such as `2030-01-31`. */
  day: string;
  strategy?: ConcurrencyStrategy | undefined;
  /** Finished jobs, steps and attempts copied from another run. */
  parts?: { jobs: JobRecord[]; steps: StepRecord[]; attempts: AttemptRecord[] } | undefined;
}

/** The run that was started with an idempotency key; `run` is undefined once the run was pruned. */
export interface KeyedRun {
  digest: string;
  run: RunRecord | undefined;
}

export type StartResult =
  /**
   * `supersedes` lists the runs that the concurrency strategy cancels. `leftToCancel` returns them until they are
   * cancelled.
   */
  | { outcome: 'started'; run: RunRecord; supersedes: string[] }
  /** The idempotency key or the parent step has already started this run. */
  | { outcome: 'known'; run: RunRecord }
  /** The idempotency key was used for a request with another digest. */
  | ({ outcome: 'different' } & KeyedRun)
  | { outcome: 'over'; limit: 'concurrent' | 'perDay' | 'perMonth' | 'key' };

/**
 * Changes of a run by its owner, in one transaction. A write with `expect.fence` null claims the run: it must have
 * `run`, and succeeds only if the run has no owner and the boot in `run.fence` is alive.
 */
export interface RunWrite {
  seq: number;
  expect: { fence: number | null; status: RunStatus };
  /** Changed fields of the run; null when only its jobs, steps or events changed. */
  run: RunProgress | null;
  jobs: JobRecord[];
  steps: StepRecord[];
  attempts: AttemptRecord[];
  events: EventRecord[];
  logs: LogLineRecord[];
  /** Inbox entries that steps consumed. */
  taken: Array<{ n: number; by: string }>;
  /** Number of the latest inbox entry that the owner has read. A waiting run is woken for any later entry. */
  inboxSeen: number;
  /** Id of the parent run if one of its steps waits for the end of this run. */
  wakeParent: string | null;
  at: number;
}

export interface WriteResult {
  /** False when another owner holds the run, in which case nothing was written. */
  applied: boolean;
  /** Runs that became ready because this write released their concurrency key. */
  promoted: RunRecord[];
}

/** Everything the engine needs to continue a run. Large values are resolved. */
export interface LoadedRun {
  run: RunRecord;
  jobs: JobRecord[];
  steps: StepRecord[];
  /** Unused inbox entries, oldest first. */
  inbox: InboxRecord[];
}

export interface RunFilter {
  /** Kind of the returned runs; both kinds when undefined. */
  kind?: 'workflow' | 'job' | undefined;
  status?: RunStatus | undefined;
  /** Matches waiting runs, and runs in clean-up, that have this wait reason. */
  waitingReason?: WaitReason | undefined;
  workflowId?: string | undefined;
  /** Matches only runs with a lower `seq`. */
  before?: number | undefined;
  limit: number;
}

export interface Numbered<Item> {
  id: number;
  item: Item;
}

/** Runs with their jobs, steps, events and logs. A write settles once it is durable. */
export interface RunStore {
  start(run: NewRun, options: StartOptions): Promise<StartResult>;
  /** Returns the run started with the idempotency key; undefined when the key is unused or expired. */
  keyed(tenantId: string, key: string, now: number): Promise<KeyedRun | undefined>;
  write(write: RunWrite): Promise<WriteResult>;
  load(seq: number): Promise<LoadedRun | undefined>;
  /**
   * Returns undefined for an unknown run and for a run of another tenant. With `tenantId` null, all tenants are
   * searched.
   */
  find(tenantId: string | null, id: string): Promise<RunRecord | undefined>;
  /** Returns the given runs, of any tenant, that have ended. */
  finished(ids: readonly string[]): Promise<RunRecord[]>;
  /**
   * Returns runs newest first. Each call scans a bounded number of rows, so a page may be short or empty although
   * more follow; continue with `next`.
   */
  list(tenantId: string, filter: RunFilter): Promise<{ runs: RunRecord[]; next: number | null }>;
  attempts(seq: number): Promise<AttemptRecord[]>;
  /** Returns the events whose number is above `after`, oldest first. */
  events(seq: number, after: number, limit: number): Promise<Array<Numbered<EventRecord>>>;
  logs(seq: number, after: number, limit: number, step?: string): Promise<Array<Numbered<LogLineRecord>>>;
  /** Returns the ids of unfinished child runs. */
  openChildren(id: string): Promise<string[]>;
  /**
   * Adds an entry to the inbox and wakes the run. Returns `taken` when `once` is set and such an entry exists, and
   * `full` above `most` entries or `mostBytes`. A `repeat` key seen before gives `repeated` or, with another digest,
   * `different`.
   */
  deliver(
    seq: number,
    entry: Omit<InboxRecord, 'n' | 'takenBy'>,
    options: {
      once: boolean;
      most: number;
      mostBytes: number;
      repeat?: { key: string; digest: string } | undefined;
    },
  ): Promise<
    { outcome: 'delivered'; n: number } | { outcome: 'ended' | 'taken' | 'full' | 'repeated' | 'different' }
  >;
  /** Returns whether an entry with this idempotency key was delivered to the run. */
  wasDelivered(seq: number, key: string): Promise<boolean>;
  /** Starts the clean-up of an idle run that is to be cancelled. Returns false when the run is claimed or has ended. */
  beginCleanUp(seq: number, at: number): Promise<boolean>;
  /** Cancels an idle run with its jobs and steps. Returns false when the run is claimed or has ended. */
  cancelIdle(seq: number, at: number): Promise<{ cancelled: boolean; promoted: RunRecord[] }>;
}
