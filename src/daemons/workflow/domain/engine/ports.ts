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

export interface EngineDeps {
  store: WorkflowStore;
  clock: Clock;
  random: Random;
  logger: Logger;
  tracer?: Tracer | undefined;
  /** Reads the definition that a run is pinned to. Throws when it cannot be read or compiled any more. */
  definitionOf(hash: string): Promise<CompiledWorkflow>;
  /** Returns the definition if it is cached. */
  definitionHere(hash: string): CompiledWorkflow | undefined;
  evaluator: Evaluator;
  /** Runs the functions of workflows in code. */
  replays: Replays;
  /** Tracks runs that wait for a plugin. */
  pluginWaits: PluginWaits;
  limits: EngineLimits;
  hooks: EngineHooks;
  /** Whether this process owns the data file exclusively, so that every earlier boot is dead. */
  exclusive: boolean;
  /** Whether the previous process crashed, rather than being killed from outside. */
  hadFault: boolean;
  /** OOM kills counted by the kernel; null if the count is unavailable. */
  oomKills(): number | null;
}

export interface EngineLimits {
  /** Maximum runs in memory. */
  runs: number;
  /** Maximum steps in flight. */
  steps: number;
  /** Crashes without progress, with work of the run in flight, after which it fails. Ten kills count as one crash. */
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
  /** Reports the end of a run; `jobs` is given when it ended in memory. */
  ended(run: RunRecord, jobs?: JobCounts): void;
  /** Reports a change that readers of the run can see. */
  changed(runId: string): void;
  /** Reports that another boot has fenced this one, so its writes no longer count. */
  fenced(): void;
}

/** Methods that the parts of the engine call on each other. */
export interface EngineHost {
  /** Fence token of this boot. */
  readonly fence: number;
  readonly startedAt: number;
  /** False before the start and after the stop; then nothing is claimed. */
  readonly isWorking: boolean;
  ended(run: RunRecord, jobs?: JobCounts): void;
  /** Wakes a run that received news while it was leaving memory. */
  wake(runId: string): Promise<void>;
  /** Reports when a run falls due. */
  notice(at: number): void;
  /** Triggers a read of due runs: more may be due, and slots free. */
  lookAgain(): void;
  offer(run: RunRecord, fresh: boolean): void;
  /** Returns false when the cancel failed and is retried. */
  cancelById(runId: string): Promise<boolean>;
  cancelChildren(runId: string): Promise<void>;
  supersede(ids: readonly string[]): Promise<void>;
}

export type CancelResult = { cancelled: boolean; status: RunStatus };

/** Claims, advances and wakes runs, and recovers those of a dead daemon. @spec Workflow daemon; Workflow run */
export interface Engine {
  /** Recovers interrupted runs. Claims begin one turn later, so that the caller can report readiness first. */
  start(): Promise<void>;
  /** Queues a started run. `fresh`: only its row is stored. */
  offer(run: RunRecord, fresh: boolean): void;
  /** Throws WORKFLOW_ALREADY_CANCELLED. A run that ended otherwise keeps its status. */
  cancel(run: RunRecord): Promise<CancelResult>;
  /** Cancels runs that another run supersedes under their concurrency key. */
  supersede(ids: readonly string[]): Promise<void>;
  /**
   * Throws CONFLICT for an ended run, a duplicate entry, or a repeated key with a different digest. Other repeats are
   * ignored.
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
  /** Registers a callback that runs at least once a second. It returns the time of its next call. */
  onTick(look: (now: number) => Promise<number | null>): void;
  /** Waits up to `drainMs` for in-flight steps, then abandons the rest. */
  stop(drainMs: number): Promise<void>;
  readonly activeRuns: number;
}
