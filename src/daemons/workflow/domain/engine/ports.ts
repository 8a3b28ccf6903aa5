import type { RunStatus } from '../../../../contracts/index.ts';
import type { Random } from '../../../../kit/security/random.ts';
import type { Logger } from '../../../../kit/telemetry/logger.ts';
import type { Tracer } from '../../../../kit/telemetry/tracer.ts';
import type { Clock } from '../../../../kit/time/clock.ts';
import type { InboxRecord, RunRecord, WorkflowStore } from '../../../../store/ports/index.ts';
import type { Replays } from '../code/replays.ts';
import type { CompiledWorkflow } from '../definition/compiled-workflow.ts';
import type { Evaluator } from '../definition/evaluator.ts';
import type { PluginWaits } from '../effects/plugin-waits.ts';
import type { AdmitChild, ChildRequest } from '../starts/child-runs.ts';
import type { RunScheduler } from '../starts/run-starter.ts';

export interface EngineDeps {
  store: WorkflowStore;
  clock: Clock;
  random: Random;
  logger: Logger;
  tracer?: Tracer | undefined;
  /** Returns the definition that a run is pinned to. Throws when it can no longer be read or compiled. */
  definitionOf(hash: string): Promise<CompiledWorkflow>;
  cachedDefinition(hash: string): CompiledWorkflow | undefined;
  admitChild: AdmitChild;
  evaluator: Evaluator;
  replays: Replays;
  pluginWaits: PluginWaits;
  limits: EngineLimits;
  hooks: EngineHooks;
  /** Whether this process owns the data file exclusively, so that every earlier boot is dead. */
  exclusive: boolean;
  /** Whether the previous process crashed and was not killed from outside. */
  hadFault: boolean;
  /** Returns the number of OOM kills that the kernel counted; null if the number is unavailable. */
  oomKills(): number | null;
}

export interface EngineLimits {
  /** Maximum runs in memory. */
  runs: number;
  /** Maximum steps in flight. */
  steps: number;
  /**
   * Number of crashes after which a run fails, counted while its work was in flight and without progress in between.
   * Ten kills count as one crash.
   */
  poisonAfter: number;
  leaseMs: number;
  /** Default time limit for the clean-up of a cancelled or timed-out run. */
  cleanUpMs: number;
  /** Maximum time that a clean-up waits for an unavailable plugin. */
  maxPluginWaitMs: number;
  /** Maximum output of a step or run in characters of JSON. */
  maxOutputChars: number;
}

export interface JobCounts {
  total: number;
  failed: number;
}

export interface EngineHooks {
  jobStarted(): void;
  jobEnded(): void;
  /** Reports the end of a run. `jobs` is given when the run ended in memory. */
  ended(run: RunRecord, jobs?: JobCounts): void;
  /** Reports a change that readers of the run can see. */
  changed(runId: string): void;
  /** Reports that another boot has fenced this one, so that its writes are rejected. */
  fenced(): void;
}

/** Methods of the engine that its components call. */
export interface EngineHost {
  /** Fence token of this boot. */
  readonly fence: number;
  readonly startedAt: number;
  /** False before the start and after the stop. While it is false, no run is claimed. */
  readonly isWorking: boolean;
  ended(run: RunRecord, jobs?: JobCounts): void;
  /** Wakes a run that received news while it was leaving memory. */
  wake(runId: string): Promise<void>;
  /** Reports the time at which a run falls due. */
  notice(at: number): void;
  /** Triggers a read of due runs, because more runs may be due or slots may have become free. */
  requestTick(): void;
  offer(run: RunRecord, fresh: boolean): void;
  /** Cancels a run. Returns false when that failed and is retried. */
  cancelById(runId: string): Promise<boolean>;
  cancelChildren(runId: string): Promise<void>;
  supersede(ids: readonly string[]): Promise<void>;
  /** Starts the child run of a step and queues it. Resolves with the id of the child. */
  startChild(request: ChildRequest): Promise<string>;
}

export type CancelResult = { cancelled: boolean; status: RunStatus };

/** Claims, advances and wakes runs, and recovers the runs of a crashed daemon. @spec Workflow daemon; Workflow run */
export interface Engine extends RunScheduler {
  /**
   * Recovers interrupted runs. Claims begin one event-loop turn later, so that the caller can report readiness first.
   */
  start(): Promise<void>;
  /** Cancels a run. Throws WORKFLOW_ALREADY_CANCELLED. A run that has already ended keeps its status. */
  cancel(run: RunRecord): Promise<CancelResult>;
  /**
   * Delivers an inbox entry. Throws CONFLICT if the run has ended, if the entry is a duplicate, or if its key was used
   * with a different digest. Other repeats are ignored.
   */
  deliver(
    run: RunRecord,
    entry: Omit<InboxRecord, 'n' | 'takenBy'>,
    options: { once: boolean; repeat?: { key: string; digest: string } | undefined },
  ): Promise<void>;
  /** Wakes runs that wait for a plugin, after a reload. */
  pluginsChanged(): Promise<void>;
  /** Processes due runs, then calls the `onTick` callbacks. */
  tick(): Promise<void>;
  /**
   * Registers a callback that runs at least once a second. The callback returns the time at which it must be called
   * again.
   */
  onTick(look: (now: number) => Promise<number | null>): void;
  /** Waits up to `drainMs` for in-flight steps, then abandons the remaining steps. */
  stop(drainMs: number): Promise<void>;
  readonly activeRuns: number;
}
