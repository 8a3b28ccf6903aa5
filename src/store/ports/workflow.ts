import type { RunError, RunStatus } from '../../contracts/index.ts';
import type { DefinitionRecord, RunRecord, ScheduleRecord } from './workflow-records.ts';
import type { ConcurrencyStrategy, RunStore } from './workflow-runs.ts';

/** Runs with at least `crashes` crashes are suspects; `killsPerCrash` kills count as one crash. */
export interface SuspectLimit {
  crashes: number;
  killsPerCrash: number;
}

/** Queue of the runs to claim next. With a `SuspectLimit`, only `nextSuspect` returns suspects. */
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
    /** True when the previous boot crashed rather than being killed from outside. */
    hadFault: boolean;
    /**
     * Processes killed by the kernel for lack of memory. An increase since its last report also counts as a
     * fault of a dead boot.
     */
    oomKills: number | null;
  }): Promise<number>;
  /** Renews the lease. Returns false when the boot was declared dead and must stop working. */
  renew(fence: number, lease: { leaseUntil: number; oomKills: number | null }): Promise<boolean>;
  /** Marks an orderly shutdown of the boot, so that its unfinished runs do not count as crashed. */
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
   * Wakes clean-ups without an owner. Extends the time limits of clean-ups and jobs by the downtime from `aliveAt` to
   * `now`.
   */
  resumeCleanUps(times: { aliveAt: number; now: number; wakeAt: number }): Promise<void>;
  /**
   * Ids of unfinished runs that a dead boot had to cancel: their parent has ended, or another run takes their
   * concurrency key.
   */
  leftToCancel(): Promise<string[]>;
}

/** Ids of loaded workflows and plugins, whose schedules are all known. */
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
