import type { RunStatus } from '../../../../contracts/index.ts';
import type { Clock } from '../../../../kit/clock.ts';
import type { Logger } from '../../../../kit/logger.ts';
import type { Random } from '../../../../kit/random.ts';
import type { Tracer } from '../../../../kit/tracer.ts';
import type { InboxRecord, RunRecord, WorkflowStore } from '../../../../store/ports/index.ts';
import type { PassDesk } from '../code/pass-desk.ts';
import type { CompiledWorkflow } from '../definition/compiled-workflow.ts';
import type { Evaluator } from '../definition/evaluator.ts';
import type { PluginWaits } from './plugin-waits.ts';

export interface EngineDeps {
  store: WorkflowStore;
  clock: Clock;
  random: Random;
  logger: Logger;
  tracer?: Tracer | undefined;
  /** The definition that a run is pinned to. Throws when it cannot be read or compiled any more. */
  definitionOf(hash: string): Promise<CompiledWorkflow>;
  /** The same, when it is at hand. */
  definitionHere(hash: string): CompiledWorkflow | undefined;
  evaluator: Evaluator;
  /** What runs the functions of workflows in code. */
  passes: PassDesk;
  /** What is known of runs that wait for a plugin. */
  pluginWaits: PluginWaits;
  limits: EngineLimits;
  hooks: EngineHooks;
  /** Whether the file is ours alone, so that every earlier boot is dead. */
  exclusive: boolean;
  /** Whether the service before this one died of a fault of its own. */
  hadFault: boolean;
  /** Processes that the kernel has ended for want of memory; null where it does not tell. */
  oomKills(): number | null;
}

export interface EngineLimits {
  /** Runs in memory at a time. */
  runs: number;
  /** Steps that do something at a time. */
  steps: number;
  /** Crashes with work of it in flight, and without progress, after which a run fails; ten kills are one. */
  poisonAfter: number;
  leaseMs: number;
  /** How long the clean-up of a run may take that is cancelled, or whose time is up; its definition may say another time. */
  cleanUpMs: number;
  /** How long a clean-up waits for a plugin that is away. */
  maxPluginWaitMs: number;
  /** Characters of JSON. */
  mostOutput: number;
}

export interface JobCounts {
  total: number;
  failed: number;
}

export interface EngineHooks {
  jobStarted(): void;
  jobEnded(): void;
  /** A run ended, however that was; `jobs` are told when it ended in memory. */
  ended(run: RunRecord, jobs?: JobCounts): void;
  /** There is something new to read of a run. */
  changed(runId: string): void;
  /** The boot was declared dead while it lives: nothing it does counts any more. */
  fenced(): void;
}

export type CancelResult = { cancelled: boolean; status: RunStatus };

/** Takes up runs, drives them, wakes them, and picks up what a dead daemon left. @spec Workflow daemon; Workflow run */
export interface Engine {
  /** Recovers; runs are taken up once the caller has had its turn, and said that the service is ready. */
  start(): Promise<void>;
  /** A run was started. `fresh`: nothing but its row is stored. */
  offer(run: RunRecord, fresh: boolean): void;
  /** Throws WORKFLOW_ALREADY_CANCELLED. A run that ended otherwise keeps its status. */
  cancel(run: RunRecord): Promise<CancelResult>;
  /** Cancels runs whose place under their concurrency key another one takes. */
  supersede(ids: readonly string[]): Promise<void>;
  /**
   * Throws CONFLICT for a run that has ended, or that has such an entry already. A repeat delivers nothing; one with another
   * digest is CONFLICT.
   */
  deliver(
    run: RunRecord,
    entry: Omit<InboxRecord, 'n' | 'takenBy'>,
    options: { once: boolean; repeat?: { key: string; digest: string } | undefined },
  ): Promise<void>;
  /** Plugins were read anew: runs that wait for one try again. */
  pluginsChanged(): Promise<void>;
  /** Looks at what is due now, and calls what `onTick` gave. */
  tick(): Promise<void>;
  /** Called beside the look at runs, at least once a second; answers when it wants the next call. */
  onTick(look: (now: number) => Promise<number | null>): void;
  /** Waits up to `drainMs` for steps in the air, then lets go of everything as it is. */
  stop(drainMs: number): Promise<void>;
  readonly activeRuns: number;
}
