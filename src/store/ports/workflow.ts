import type { RunError, RunStatus } from '../../contracts/index.ts';
import type { DefinitionRecord, RunRecord, ScheduleRecord } from './workflow-records.ts';
import type { ConcurrencyStrategy, RunStore } from './workflow-runs.ts';

/** Threshold of suspect runs: those with at least `crashes` crashes, where `killsPerCrash` kills count as one crash. */
export interface SuspectLimit {
  crashes: number;
  killsPerCrash: number;
}

/** Queue of the runs to claim next. With a `SuspectLimit`, only `nextSuspect` returns suspects. */
export interface RunQueue {
  /** Returns the tenants that have a ready run. */
  tenants(): Promise<string[]>;
  /** Returns a tenant's ready runs in queue order. */
  ready(tenantId: string, limit: number, suspects?: SuspectLimit): Promise<RunRecord[]>;
  /**
   * Returns runs whose `wakeAt` has passed, most overdue first. The given tenants are skipped; the others take turns.
   */
  due(now: number, limit: number, except?: readonly string[], suspects?: SuspectLimit): Promise<RunRecord[]>;
  /** Returns the first `wakeAt` after a time. For suspects, it is the first one after `now`. */
  nextWake(after: number, suspects?: SuspectLimit & { now: number }): Promise<number | null>;
  /** Returns a suspect run that is ready, otherwise the most overdue suspect. The given tenants are skipped. */
  nextSuspect(
    now: number,
    suspects: SuspectLimit,
    except?: readonly string[],
  ): Promise<RunRecord | undefined>;
  /**
   * Makes a scheduled run ready at its time. If its concurrency key is occupied, its strategy applies instead;
   * `reject` ends the run as given by `refused`. Returns undefined when the run is no longer scheduled.
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

/** Boots of the service, which own runs. The number of a boot is the fence token of its writes. */
export interface BootStore {
  /**
   * Starts a boot. With `exclusive`, the file is locked, so every earlier boot is declared dead; otherwise only boots
   * with an expired lease are.
   */
  begin(boot: {
    bootId: string;
    pid: number;
    now: number;
    leaseMs: number;
    exclusive: boolean;
    /** True when the previous boot crashed by itself; false when it was killed from outside. */
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
  /** Returns when an earlier boot ended or last renewed its lease; null when there was no earlier boot. */
  lastAlive(leaseMs: number): Promise<number | null>;
  /**
   * Wakes clean-ups without an owner. Extends the time limits of clean-ups and jobs by the downtime from `aliveAt` to
   * `now`.
   */
  resumeCleanUps(times: { aliveAt: number; now: number; wakeAt: number }): Promise<void>;
  /**
   * Returns ids of unfinished runs that a dead boot should have cancelled: their parent has ended, or another run
   * takes their concurrency key.
   */
  leftToCancel(): Promise<string[]>;
}

/** Ids of loaded workflows and plugins. Only their schedules may be replaced. */
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
  /** Returns the first due time after `now`. */
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
   * Deletes runs that ended before `finishedBefore`, with their jobs, steps and events. Checks at most `limit` runs,
   * starting after the run number `after`.
   */
  prune(options: { finishedBefore: number; after: number; limit: number }): Promise<{
    pruned: number;
    /** Run number to continue after; null once every older run has been checked. */
    next: number | null;
    /** Ids of the definitions that the remaining runs use. */
    inUse: string[];
  }>;
  /**
   * Deletes at most `limit` expired idempotency keys and unneeded run counts. Returns less than `limit` when none are
   * left.
   */
  pruneKeys(options: { now: number; limit: number }): Promise<number>;
  /**
   * Deletes some definitions that no run has used since `usedBefore`, except `inUse`; returns 0 when none are
   * left.
   */
  pruneDefinitions(options: { usedBefore: number; inUse: ReadonlySet<string> }): Promise<number>;
  close(): Promise<void>;
}
