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

/** A run to be started, without the fields that the store sets (its number, whether it is ready). */
export type NewRun = Omit<RunRecord, 'seq' | keyof RunProgress> & { deadlineAt: number | null };

/** What happens when a run's concurrency key is occupied; default: it waits. */
export type ConcurrencyStrategy = 'queue' | 'cancel-running' | 'replace-queued' | 'reject';

export interface StartOptions {
  /** Written if the store does not have it yet. */
  definition: DefinitionRecord;
  /**
   * A second start with the same key returns the first run; `digest` tells whether both requests are equal.
   */
  idempotency?: { key: string; digest: string; expiresAt: number } | undefined;
  /** The tenant's limits; absent: none. Children of a run are started without limits. */
  limits?: { concurrent: number | null; perDay: number | null; perMonth: number | null } | undefined;
  /** UTC day whose quota the run counts towards: `2030-01-31`. */
  day: string;
  strategy?: ConcurrencyStrategy | undefined;
  /** Finished parts copied from another run. */
  parts?: { jobs: JobRecord[]; steps: StepRecord[]; attempts: AttemptRecord[] } | undefined;
}

/** The run started with an idempotency key; `run` is undefined once it was pruned. */
export interface KeyedRun {
  digest: string;
  run: RunRecord | undefined;
}

export type StartResult =
  /**
   * `supersedes`: runs of the same concurrency key that the strategy cancels; `leftToCancel` lists them until
   * then.
   */
  | { outcome: 'started'; run: RunRecord; supersedes: string[] }
  /** The idempotency key or the parent step has already started this run. */
  | { outcome: 'known'; run: RunRecord }
  /** The key was used for a request with another digest. */
  | ({ outcome: 'different' } & KeyedRun)
  | { outcome: 'over'; limit: 'concurrent' | 'perDay' | 'perMonth' | 'key' };

/**
 * Changes of a run by its owner, in one transaction. With `expect.fence` null the run is claimed: succeeds
 * only if it has no owner and the boot in `run.fence` lives. A claim always has a `run`.
 */
export interface RunWrite {
  seq: number;
  expect: { fence: number | null; status: RunStatus };
  /** Null when the run's own fields did not change. */
  run: RunProgress | null;
  jobs: JobRecord[];
  steps: StepRecord[];
  attempts: AttemptRecord[];
  events: EventRecord[];
  logs: LogLineRecord[];
  /** Inbox entries that steps consumed. */
  taken: Array<{ n: number; by: string }>;
  /**
   * The latest inbox entry that the owner has seen: a run that starts to wait is woken for any later one.
   */
  inboxSeen: number;
  /** The run with a step that waits for the end of this one. */
  wakeParent: string | null;
  at: number;
}

export interface WriteResult {
  /** False: another owner holds the run, and nothing was written. */
  applied: boolean;
  /** Runs that received the released concurrency key. */
  promoted: RunRecord[];
}

/** Everything the engine needs to continue a run. Large values are resolved. */
export interface LoadedRun {
  run: RunRecord;
  jobs: JobRecord[];
  steps: StepRecord[];
  /** Unused input, oldest first. */
  inbox: InboxRecord[];
}

export interface RunFilter {
  /** Default: both. */
  kind?: 'workflow' | 'job' | undefined;
  status?: RunStatus | undefined;
  /** Runs, and clean-ups, with this wait reason. */
  waitingReason?: WaitReason | undefined;
  workflowId?: string | undefined;
  /** Only runs older than this `seq`. */
  before?: number | undefined;
  limit: number;
}

export interface Numbered<Item> {
  id: number;
  item: Item;
}

/** Runs and their parts. A write settles once it is durable. */
export interface RunStore {
  start(run: NewRun, options: StartOptions): Promise<StartResult>;
  /** The run started with the key; undefined when the key is unused or expired. */
  keyed(tenantId: string, key: string, now: number): Promise<KeyedRun | undefined>;
  write(write: RunWrite): Promise<WriteResult>;
  load(seq: number): Promise<LoadedRun | undefined>;
  /** Undefined also for a run of another tenant; `tenantId` null searches all tenants. */
  find(tenantId: string | null, id: string): Promise<RunRecord | undefined>;
  /** Those of the given runs that have ended, of any tenant. */
  finished(ids: readonly string[]): Promise<RunRecord[]>;
  /**
   * Newest first. A page may be short or empty before the last one, since each call scans a bounded number of
   * rows; continue with `next`.
   */
  list(tenantId: string, filter: RunFilter): Promise<{ runs: RunRecord[]; next: number | null }>;
  attempts(seq: number): Promise<AttemptRecord[]>;
  /** Numbered events after `after`, oldest first. */
  events(seq: number, after: number, limit: number): Promise<Array<Numbered<EventRecord>>>;
  logs(seq: number, after: number, limit: number, step?: string): Promise<Array<Numbered<LogLineRecord>>>;
  /** Ids of unfinished child runs. */
  openChildren(id: string): Promise<string[]>;
  /**
   * Adds an entry to the inbox and wakes the run. `ended`: the run has finished. `taken`: with `once`, an
   * entry of that kind and name exists. `full`: the signal exceeds `most` unused entries or `mostBytes`. With
   * a `repeat`, `repeated` when the same key and digest arrived before, even after the run's end; `different`
   * for another digest.
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
  /**
   * Starts to cancel an idle run that has started: its clean-up is due. Returns false when the run is claimed
   * or has ended.
   */
  beginCleanUp(seq: number, at: number): Promise<boolean>;
  /** Cancels an idle run with all its parts. Returns false when the run is claimed or has ended. */
  cancelIdle(seq: number, at: number): Promise<{ cancelled: boolean; promoted: RunRecord[] }>;
}

/** Runs with at least `crashes` crashes are suspects; `killsPerCrash` kills count as one crash. */
export interface SuspectLimit {
  crashes: number;
  killsPerCrash: number;
}

/** Runs to be claimed next. With a `SuspectLimit`, suspects are left out except by `nextSuspect`. */
export interface RunQueue {
  /** Tenants with a ready run. */
  tenants(): Promise<string[]>;
  /** A tenant's ready runs in queue order. */
  ready(tenantId: string, limit: number, suspects?: SuspectLimit): Promise<RunRecord[]>;
  /**
   * Runs whose `wakeAt` has passed, most overdue first. The given tenants are skipped; the others take turns.
   */
  due(now: number, limit: number, except?: readonly string[], suspects?: SuspectLimit): Promise<RunRecord[]>;
  /** The first `wakeAt` after a time; for suspects the first after `now`. */
  nextWake(after: number, suspects?: SuspectLimit & { now: number }): Promise<number | null>;
  /** A suspect that is ready, else the most overdue one. The given tenants are skipped. */
  nextSuspect(
    now: number,
    suspects: SuspectLimit,
    except?: readonly string[],
  ): Promise<RunRecord | undefined>;
  /**
   * Releases a scheduled run at its time: it becomes ready or, if its concurrency key is occupied, follows
   * its strategy; `reject` ends it as `refused` says. `supersedes` as in StartResult. Undefined when the run
   * is no longer scheduled.
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
  /** Wakes every run and clean-up that waits for a plugin. */
  wakeForPlugins(at: number): Promise<void>;
}

/** Returns whether a run has crashed the service often enough to be failed. */
export type IsPoison = (run: Pick<RunRecord, 'crashes' | 'kills'>) => boolean;

/** Owners of runs. The number of a boot is the fence token of its writes. */
export interface BootStore {
  /**
   * Starts a boot. `exclusive`: the file is locked, so every earlier boot is dead; otherwise those with an
   * expired lease are.
   */
  begin(boot: {
    bootId: string;
    pid: number;
    now: number;
    leaseMs: number;
    exclusive: boolean;
    /** The previous boot died of its own fault. */
    hadFault: boolean;
    /**
     * Processes killed by the kernel for lack of memory. An increase since its last report also counts as a
     * fault of a dead boot.
     */
    oomKills: number | null;
  }): Promise<number>;
  /** Renews the lease. Returns false when the boot was declared dead and must stop working. */
  renew(fence: number, lease: { leaseUntil: number; oomKills: number | null }): Promise<boolean>;
  /** Marks an orderly shutdown of the boot: its unfinished runs do not count as crashes. */
  stopping(fence: number): Promise<void>;
  end(fence: number, now: number): Promise<void>;
  /**
   * Marks at most `limit` runs of dead boots, and their in-flight parts, as interrupted. Runs in clean-up
   * stay `cancelling` and become due, unless they are poison: those end.
   */
  interrupt(now: number, limit: number, isPoison: IsPoison): Promise<RunRecord[]>;
  /** Queues at most `limit` interrupted runs ahead of others; fails poison runs. */
  resume(now: number, limit: number, isPoison: IsPoison): Promise<RunRecord[]>;
  /** When an earlier boot was last known alive: its end, or its last lease renewal. Null: no earlier boot. */
  lastAlive(leaseMs: number): Promise<number | null>;
  /**
   * Wakes clean-ups without an owner and extends their limits and those of jobs: downtime of the service, from
   * `aliveAt` to `now`, does not count.
   */
  resumeCleanUps(times: { aliveAt: number; now: number; wakeAt: number }): Promise<void>;
  /**
   * Ids of unfinished runs that a dead boot had to cancel: their parent has ended, or another run takes their
   * concurrency key.
   */
  leftToCancel(): Promise<string[]>;
}

/** Loaded workflows and plugins, whose schedules are all known. */
export interface ScheduleOwners {
  workflows: ReadonlySet<string>;
  plugins: ReadonlySet<string>;
}

export interface ScheduleStore {
  /**
   * Replaces the schedules of loaded owners by the given ones and keeps their state (paused, last run).
   * Schedules of absent owners stay inactive for 30 days: neither listed nor due.
   */
  sync(
    schedules: Array<Omit<ScheduleRecord, 'paused' | 'lastAt' | 'lastRunId'>>,
    owners: ScheduleOwners,
    now: number,
  ): Promise<void>;
  list(tenantId: string): Promise<ScheduleRecord[]>;
  find(tenantId: string, id: string): Promise<ScheduleRecord | undefined>;
  due(now: number): Promise<ScheduleRecord[]>;
  /** The first due time after `now`. */
  nextAt(now: number): Promise<number | null>;
  /** Records that all times up to `lastAt` have been handled. */
  served(
    id: string,
    served: { nextAt: number | null; lastAt: number | null; lastRunId: string | null },
  ): Promise<void>;
  setPaused(id: string, paused: boolean, nextAt: number | null): Promise<void>;
}

/** The workflow service's stores: in SQLite, the file `workflow.db`. */
export interface WorkflowStore {
  runs: RunStore;
  queue: RunQueue;
  boots: BootStore;
  schedules: ScheduleStore;
  definition(hash: string): Promise<DefinitionRecord | undefined>;
  /**
   * Checks `limit` runs after `seq` `after`, and deletes those that ended before `finishedBefore`, with their
   * parts.
   */
  prune(options: { finishedBefore: number; after: number; limit: number }): Promise<{
    pruned: number;
    /** Where to continue; null once every older run has been checked. */
    next: number | null;
    /** Definitions of the remaining runs. */
    inUse: string[];
  }>;
  /**
   * Deletes expired idempotency keys and run counts that no limit needs; a result below `limit` means none
   * are left.
   */
  pruneKeys(options: { now: number; limit: number }): Promise<number>;
  /**
   * Deletes some definitions that no run has used since `usedBefore`, except `inUse`; returns 0 when none are
   * left.
   */
  pruneDefinitions(options: { usedBefore: number; inUse: ReadonlySet<string> }): Promise<number>;
  close(): Promise<void>;
}
