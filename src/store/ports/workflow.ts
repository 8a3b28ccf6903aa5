import type { RunError, RunStatus, WaitReason } from '../../contracts/index.ts';
import type {
  AttemptRecord,
  DefinitionRecord,
  EventRecord,
  InboxRecord,
  JobRecord,
  LogLineRecord,
  RunProgress,
  RunRecord,
  ScheduleRecord,
  StepRecord,
} from './workflow-records.ts';

/** A run as it is started; what the store settles itself (its number, whether it is ready) is missing. */
export type NewRun = Omit<RunRecord, 'seq' | keyof RunProgress> & { deadlineAt: number | null };

/** What a run does that finds its concurrency key taken; without a word of it, it waits. */
export type ConcurrencyStrategy = 'queue' | 'cancel-running' | 'replace-queued' | 'reject';

export interface StartOptions {
  /** Written when the store does not have it yet. */
  definition: DefinitionRecord;
  /** A second start with the same key finds the first run; `digest` tells whether it asked for the same. */
  idempotency?: { key: string; digest: string; expiresAt: number } | undefined;
  /** What the tenant may have; absent: no limit. Children of a run are started without. */
  limits?: { concurrent: number | null; perDay: number | null; perMonth: number | null } | undefined;
  /** The UTC day that the run counts for: `2030-01-31`. */
  day: string;
  strategy?: ConcurrencyStrategy | undefined;
  /** Finished parts taken over from another run. */
  parts?: { jobs: JobRecord[]; steps: StepRecord[]; attempts: AttemptRecord[] } | undefined;
}

/** What an idempotency key started; `run` is undefined once it was pruned. */
export interface KeyedRun {
  digest: string;
  run: RunRecord | undefined;
}

export type StartResult =
  /** `supersedes`: runs of the same concurrency key that the strategy wants cancelled; `leftToCancel` tells them until they are. */
  | { outcome: 'started'; run: RunRecord; supersedes: string[] }
  /** The idempotency key, or the step of the parent, has started this one before. */
  | { outcome: 'known'; run: RunRecord }
  /** The key was used for a request of another digest. */
  | ({ outcome: 'different' } & KeyedRun)
  | { outcome: 'over'; limit: 'concurrent' | 'perDay' | 'perMonth' | 'key' };

/**
 * What the holder of a run found out, written as one. With `expect.fence` null the run is claimed: that succeeds for one
 * that nobody holds and only while the boot in `run.fence` lives. A claim always has a `run`.
 */
export interface RunWrite {
  seq: number;
  expect: { fence: number | null; status: RunStatus };
  /** Null when nothing of the run itself changed. */
  run: RunProgress | null;
  jobs: JobRecord[];
  steps: StepRecord[];
  attempts: AttemptRecord[];
  events: EventRecord[];
  logs: LogLineRecord[];
  /** Inbox entries that steps used. */
  taken: Array<{ n: number; by: string }>;
  /** The latest inbox entry that the holder knows: a run that comes to wait is woken for any later one. */
  inboxSeen: number;
  /** The run whose step waits for the end of this one. */
  wakeParent: string | null;
  at: number;
}

export interface WriteResult {
  /** False: somebody else holds the run by now, and nothing was written. */
  applied: boolean;
  /** Runs that got the concurrency key which this one gave back. */
  promoted: RunRecord[];
}

/** Everything the engine needs to go on with a run. Large values are resolved. */
export interface LoadedRun {
  run: RunRecord;
  jobs: JobRecord[];
  steps: StepRecord[];
  /** What came and was not used yet, oldest first. */
  inbox: InboxRecord[];
}

export interface RunFilter {
  /** Default: both. */
  kind?: 'workflow' | 'job' | undefined;
  status?: RunStatus | undefined;
  /** Runs, and clean-ups, that wait for it. */
  waitingReason?: WaitReason | undefined;
  workflowId?: string | undefined;
  /** Only what is older than this `seq`. */
  before?: number | undefined;
  limit: number;
}

export interface Numbered<Item> {
  id: number;
  item: Item;
}

/** Runs and what belongs to them. A write's promise settles once it is durable. */
export interface RunStore {
  start(run: NewRun, options: StartOptions): Promise<StartResult>;
  /** What the key started; undefined for one that is not in use, or not any more. */
  keyed(tenantId: string, key: string, now: number): Promise<KeyedRun | undefined>;
  write(write: RunWrite): Promise<WriteResult>;
  load(seq: number): Promise<LoadedRun | undefined>;
  /** Undefined also for a run of another tenant; with `tenantId` null whosever it is. */
  find(tenantId: string | null, id: string): Promise<RunRecord | undefined>;
  /** Those of the runs, whosever they are, that have ended. */
  finished(ids: readonly string[]): Promise<RunRecord[]>;
  /** Newest first. A page may be short, even empty, before the last: the search looks at so many rows a call; `next` goes on. */
  list(tenantId: string, filter: RunFilter): Promise<{ runs: RunRecord[]; next: number | null }>;
  attempts(seq: number): Promise<AttemptRecord[]>;
  /** Numbered events after `after`, oldest first. */
  events(seq: number, after: number, limit: number): Promise<Array<Numbered<EventRecord>>>;
  logs(seq: number, after: number, limit: number, step?: string): Promise<Array<Numbered<LogLineRecord>>>;
  /** Ids of the children of a run that have not ended. */
  openChildren(id: string): Promise<string[]>;
  /**
   * Puts something into the inbox and wakes the run. `ended` for a finished run; `taken` when `once` and there is one of
   * that kind and name; `full` for a signal when `most` wait there that no step has used, or with it more than `mostBytes`. With a `repeat`, `repeated` for
   * what came before with its key and digest, also to a run that has ended since; `different` for another digest.
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
  /** Whether an entry with this idempotency key was delivered to the run. */
  wasDelivered(seq: number, key: string): Promise<boolean>;
  /** Begins to cancel a started run that nobody holds: it is due for its clean-up. False when somebody holds it, or it has ended. */
  beginCleanUp(seq: number, at: number): Promise<boolean>;
  /** Cancels a run that nobody holds, with all its parts. False when somebody holds it, or it has ended. */
  cancelIdle(seq: number, at: number): Promise<{ cancelled: boolean; promoted: RunRecord[] }>;
}

/** Which runs are to be taken up next. */
export interface RunQueue {
  /** Tenants with a ready run. */
  tenants(): Promise<string[]>;
  /** A tenant's ready runs in their order, from the first on. */
  ready(tenantId: string, limit: number): Promise<RunRecord[]>;
  /** Runs whose `wakeAt` has come, the longest due first; without those of some tenants, one tenant after the other. */
  due(now: number, limit: number, except?: readonly string[]): Promise<RunRecord[]>;
  /** The first `wakeAt` after a time. */
  nextWake(after: number): Promise<number | null>;
  /**
   * The time of a scheduled run has come: it is ready, or its concurrency key is taken and it does as its strategy says. For
   * `reject` that is to end as `refused` tells; `supersedes` as at a start. Undefined when it is not scheduled any more.
   */
  release(
    seq: number,
    options: {
      at: number;
      strategy: ConcurrencyStrategy | undefined;
      refused: { status: RunStatus; error: RunError };
    },
  ): Promise<{ run: RunRecord; supersedes: string[] } | undefined>;
  /** Wakes a waiting run. */
  wake(id: string, at: number): Promise<void>;
  /** Wakes every run, and every clean-up, whose `reason` is that it waits for a plugin. */
  wakeForPlugins(at: number): Promise<void>;
}

/** Whether a run has brought the service down often enough to be given up. */
export type IsPoison = (run: Pick<RunRecord, 'crashes' | 'kills'>) => boolean;

/** Who holds runs. The number of a boot is the fence of its writes. */
export interface BootStore {
  /**
   * A new boot. `exclusive`: no other process can be at work (the file is locked), so every earlier boot is dead; else
   * those are dead whose lease is over.
   */
  begin(boot: {
    bootId: string;
    pid: number;
    now: number;
    leaseMs: number;
    exclusive: boolean;
    /** The boot before died of a fault of its own. */
    hadFault: boolean;
    /** Processes that the kernel has ended for want of memory: more than its last word knew is a fault of a dead boot too. */
    oomKills: number | null;
  }): Promise<number>;
  /** Prolongs the lease. False: the boot was declared dead, and must not do anything any more. */
  renew(fence: number, lease: { leaseUntil: number; oomKills: number | null }): Promise<boolean>;
  /** The boot is being stopped in an orderly way: what it leaves behind is no sign of a fault. */
  stopping(fence: number): Promise<void>;
  end(fence: number, now: number): Promise<void>;
  /**
   * Marks at most `limit` runs of dead boots as interrupted, with their parts in the air. Those that were cleaning up stay
   * `cancelling` and are due; those of them that are poison end.
   */
  interrupt(now: number, limit: number, isPoison: IsPoison): Promise<RunRecord[]>;
  /** Queues at most `limit` interrupted runs ahead of others; fails those that are poison. */
  resume(now: number, limit: number, isPoison: IsPoison): Promise<RunRecord[]>;
  /** When an earlier boot gave its last sign of life: it ended, or renewed its lease. Null: there was none. */
  lastAlive(leaseMs: number): Promise<number | null>;
  /**
   * Wakes the clean-ups of runs that nobody holds, and moves their limits and those of jobs on: the time without a service, from
   * `aliveAt` to `now`, does not count.
   */
  resumeCleanUps(times: { aliveAt: number; now: number; wakeAt: number }): Promise<void>;
  /** Ids of unfinished runs that a dead boot had to cancel: their parent has ended, or another run takes their concurrency key. */
  leftToCancel(): Promise<string[]>;
}

/** The loaded owners of schedules, of which every schedule is known. */
export interface ScheduleOwners {
  workflows: ReadonlySet<string>;
  plugins: ReadonlySet<string>;
}

export interface ScheduleStore {
  /**
   * Makes the schedules in force those given; keeps what is known of each (paused, last run). Deletes any other whose owner is
   * loaded. One whose owner is absent stays inactive for 30 days: it is neither listed nor due.
   */
  sync(
    schedules: Array<Omit<ScheduleRecord, 'paused' | 'lastAt' | 'lastRunId'>>,
    owners: ScheduleOwners,
    now: number,
  ): Promise<void>;
  list(tenantId: string): Promise<ScheduleRecord[]>;
  find(tenantId: string, id: string): Promise<ScheduleRecord | undefined>;
  due(now: number): Promise<ScheduleRecord[]>;
  /** The first time after `now` that one is due; what is due already is not counted. */
  nextAt(now: number): Promise<number | null>;
  /** Says that times up to `lastAt` are served. */
  served(
    id: string,
    served: { nextAt: number | null; lastAt: number | null; lastRunId: string | null },
  ): Promise<void>;
  setPaused(id: string, paused: boolean, nextAt: number | null): Promise<void>;
}

/** All that the workflow daemon keeps: in SQLite the file `workflow.db`. */
export interface WorkflowStore {
  runs: RunStore;
  queue: RunQueue;
  boots: BootStore;
  schedules: ScheduleStore;
  definition(hash: string): Promise<DefinitionRecord | undefined>;
  /** Looks at `limit` runs after the `seq` `after`, and forgets those that ended before, with what belongs to them. */
  prune(options: { finishedBefore: number; after: number; limit: number }): Promise<{
    pruned: number;
    /** Where to go on; null once every run that was started before has been looked at. */
    next: number | null;
    /** Definitions of the runs that stay. */
    inUse: string[];
  }>;
  /** Forgets idempotency keys that are over, and counts of runs that no limit asks for any more; fewer than `limit`: all of them. */
  pruneKeys(options: { now: number; limit: number }): Promise<number>;
  /** Forgets some of the definitions that no run was started of since, but those `inUse`; 0 when there are no more. */
  pruneDefinitions(options: { usedBefore: number; inUse: ReadonlySet<string> }): Promise<number>;
  close(): Promise<void>;
}
