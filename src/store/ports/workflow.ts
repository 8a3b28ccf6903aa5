import type { RunError, RunStatus } from '../../contracts/index.ts';
import type { AlertFact, NewAlertFact } from './alerts.ts';
import type { EndTaskStore } from './end-tasks.ts';
import type { MemberRecord, MemberStore } from './members.ts';
import type { StoreMonitor } from './monitor.ts';
import type { PauseStore } from './pauses.ts';
import type { SecretApprovalStore } from './secret-approvals.ts';
import type { SharedRunStore } from './shared-runs.ts';
import type { DefinitionRecord, RunRecord, ScheduleRecord, SuspectLimit } from './workflow-records.ts';
import type { ConcurrencyStrategy, RunStore } from './workflow-runs.ts';

/**
 * Queue of the runs to claim next. If a `SuspectLimit` is given, only `nextSuspect` returns runs that often crashed the
 * service.
 */
export interface RunQueue {
  tenants(): Promise<string[]>;
  /** Returns the tenant's ready runs in queue order. */
  ready(tenantId: string, limit: number, suspects?: SuspectLimit): Promise<RunRecord[]>;
  /**
   * Returns runs whose `wakeAt` has passed, most overdue first. With `except`, skips runs of the given tenants and
   * returns the runs in any order.
   */
  due(now: number, limit: number, except?: readonly string[], suspects?: SuspectLimit): Promise<RunRecord[]>;
  /** Returns the earliest `wakeAt` after `after`. Skips overdue runs that often crashed the service. */
  nextWake(after: number, suspects?: SuspectLimit & { now: number }): Promise<number | null>;
  /**
   * Returns a run that often crashed the service. A ready run is preferred to an overdue run. Tenants in `except` are
   * skipped.
   */
  nextSuspect(
    now: number,
    suspects: SuspectLimit,
    except?: readonly string[],
  ): Promise<RunRecord | undefined>;
  /**
   * Makes a scheduled run ready. Applies `strategy` if the concurrency key is occupied. Returns undefined if the run is
   * no longer scheduled.
   */
  release(
    seq: number,
    options: {
      at: number;
      strategy: ConcurrencyStrategy | undefined;
      refused: { status: RunStatus; error: RunError };
    },
  ): Promise<{ run: RunRecord; supersedes: string[] } | undefined>;
  /**
   * Wakes a waiting run. Returns the fence of the owner if the run has one. The owner of a shared run then gets a
   * notice.
   */
  wake(id: string, at: number): Promise<number | null>;
  /** Wakes all runs and clean-ups that wait for a plugin. */
  wakeForPlugins(at: number): Promise<void>;
}

/** Returns whether a run has crashed the service so often that it must fail. */
export type IsPoison = (run: Pick<RunRecord, 'crashes' | 'kills'>) => boolean;

/**
 * Starts of service processes, called boots. A boot owns the runs that its process claims. The boot number is the fence
 * token of the process.
 */
export interface BootStore {
  /**
   * Records the start of a service process and returns its boot number. With `exclusive`, all earlier processes are
   * dead, because the caller has locked the file. Otherwise, processes whose member has ended are declared dead, and so
   * are processes without a member whose lease has expired.
   */
  begin(boot: {
    bootId: string;
    pid: number;
    now: number;
    leaseMs: number;
    exclusive: boolean;
    /** Member of this process, if other processes share the runs. */
    member?: Pick<MemberRecord, 'instance' | 'fence'> | undefined;
    /** Whether the previous service process of this node crashed by itself. False if it was killed from outside. */
    hadFault: boolean;
    /**
     * Number of processes that the kernel has killed for lack of memory. If a dead process last reported a lower
     * number, this process counts as crashed.
     */
    oomKills: number | null;
  }): Promise<number>;
  /** Renews the lease. Returns false when the process was declared dead and must stop working. */
  renew(fence: number, lease: { leaseUntil: number; oomKills: number | null }): Promise<boolean>;
  /** Records an orderly shutdown of the process. An orderly shutdown does not count as a crash. */
  stopping(fence: number): Promise<void>;
  end(fence: number, now: number): Promise<void>;
  /**
   * Marks at most `limit` runs of dead processes as interrupted. Ends runs that crashed the service too often. A
   * `cancelling` run keeps its status and becomes due.
   */
  interrupt(now: number, limit: number, isPoison: IsPoison): Promise<RunRecord[]>;
  /**
   * Queues at most `limit` interrupted runs before all other runs. Runs that crashed the service too often fail
   * instead.
   */
  resume(now: number, limit: number, isPoison: IsPoison): Promise<RunRecord[]>;
  /**
   * Returns the time at which the latest earlier process ended or renewed its lease. Returns null if there was no
   * earlier process.
   */
  lastAlive(leaseMs: number): Promise<number | null>;
  /**
   * Wakes runs in clean-up that have no owner. Extends the time limits of clean-ups by the downtime between `aliveAt`
   * and `now`.
   */
  resumeCleanUps(times: { aliveAt: number; now: number; wakeAt: number }): Promise<void>;
  /** Returns the runs whose cancellation a dead process has not completed. */
  leftToCancel(): Promise<string[]>;
}

/** Ids of the loaded workflows and plugins. Schedules of other owners are not replaced. */
export interface ScheduleOwners {
  workflows: ReadonlySet<string>;
  plugins: ReadonlySet<string>;
}

/** Node and member that register schedules. */
export type ScheduleNode = Pick<MemberRecord, 'instance' | 'fence'>;

/** Node that registers schedules, with a digest of its schedules. */
export interface ScheduleSource extends ScheduleNode {
  release: string;
}

/** Member that claims due schedules, and the ids of the workflows that it can start. */
export interface ScheduleClaim {
  fence: number;
  workflows: readonly string[];
}

/** Times of a schedule that were handled. */
export interface ServedSchedule {
  nextAt: number | null;
  lastAt: number | null;
  lastRunId: string | null;
  /** Fact that a due time passed without a run. It is written in the same transaction. */
  missed?: NewAlertFact | undefined;
}

/** Facts about runs and schedules. On PostgreSQL, the gateway reads them itself. */
export interface RunFactStore {
  /** Returns facts above `after`, oldest first, and deletes those up to it. */
  read(after: number, limit: number): Promise<AlertFact[]>;
}

/** Step that waits for an approval. */
export interface WaitingApproval {
  tenantId: string;
  runId: string;
  workflowId: string;
  /** Epoch ms. */
  since: number;
}

export interface ScheduleStore {
  /**
   * Replaces the schedules of the loaded workflows and plugins. Deactivates the schedules of other owners, and deletes
   * these schedules after 30 days. If `node` is given, keeps schedules that another live node has registered. If the
   * nodes have different plans of a schedule, the plan of the release that was registered last applies.
   */
  sync(
    schedules: Array<Omit<ScheduleRecord, 'paused' | 'lastAt' | 'lastRunId'>>,
    owners: ScheduleOwners,
    now: number,
    node?: ScheduleSource,
  ): Promise<void>;
  list(tenantId: string): Promise<ScheduleRecord[]>;
  find(tenantId: string, id: string): Promise<ScheduleRecord | undefined>;
  /**
   * Returns the schedules whose next time has passed. With `claim`, claims those of the given workflows for the member
   * until it calls `served` or ends. Schedules that another live member has claimed are skipped.
   */
  due(now: number, claim?: ScheduleClaim): Promise<ScheduleRecord[]>;
  nextAt(now: number): Promise<number | null>;
  /**
   * Records that all due times of a schedule up to `lastAt` have been handled. With `fence`, ends the claim of this
   * member, and changes nothing if the member has no claim.
   */
  served(id: string, served: ServedSchedule, fence?: number): Promise<void>;
  setPaused(id: string, paused: boolean, nextAt: number | null): Promise<void>;
}

/** The workflow service's stores. SQLite keeps all of these stores in the file `workflow.db`. */
export interface WorkflowStore {
  runs: RunStore;
  queue: RunQueue;
  boots: BootStore;
  schedules: ScheduleStore;
  approvals: SecretApprovalStore;
  endTasks: EndTaskStore;
  pauses: PauseStore;
  /** Undefined on PostgreSQL. */
  facts?: RunFactStore;
  /** Returns at most `limit` top-level waits for an approval that began at `before` or earlier. */
  waitingApprovals(before: number, limit: number, tenantId?: string): Promise<WaitingApproval[]>;
  members: MemberStore;
  /** Undefined if only one process executes the runs of the store. */
  shared?: SharedRunStore | undefined;
  definition(hash: string): Promise<DefinitionRecord | undefined>;
  /**
   * Deletes runs that ended before `finishedBefore`. Reads at most `limit` runs, starting after the run whose `seq` is
   * `after`.
   */
  prune(options: { finishedBefore: number; after: number; limit: number }): Promise<{
    pruned: number;
    /** Run number from which the next call continues, or null once all older runs were read. */
    next: number | null;
    /** Hashes of the definitions that are used by runs which this call has read but not deleted. */
    inUse: string[];
  }>;
  /**
   * Deletes at most `limit` expired idempotency keys and outdated run counts. A result below `limit` means that no such
   * rows are left.
   */
  pruneKeys(options: { now: number; limit: number }): Promise<number>;
  /**
   * Deletes a batch of definitions that no run has used since `usedBefore`. Keeps the definitions in `inUse`. Returns 0
   * if no such definition is left.
   */
  pruneDefinitions(options: { usedBefore: number; inUse: ReadonlySet<string> }): Promise<number>;
  /** Undefined for SQLite. */
  monitor?: StoreMonitor;
  /** Resolves when the database has accepted a write transaction. */
  probe(): Promise<unknown>;
  close(): Promise<void>;
}
