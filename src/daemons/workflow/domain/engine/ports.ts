import type { RunStatus } from '../../../../contracts/index.ts';
import type { Random } from '../../../../kit/security/random.ts';
import type { Logger } from '../../../../kit/telemetry/logger.ts';
import type { Tracer } from '../../../../kit/telemetry/tracer.ts';
import type { Clock } from '../../../../kit/time/clock.ts';
import type {
  InboxRecord,
  MemberRecord,
  RunRecord,
  SharedRunStore,
  TenantWorkflow,
  WorkflowStore,
} from '../../../../store/ports/index.ts';
import type { Replays } from '../code/replays.ts';
import type { CompiledWorkflow } from '../definition/compiled-workflow.ts';
import type { Evaluator } from '../definition/evaluator.ts';
import type { PluginWaits } from '../effects/plugin-waits.ts';
import type { StepSecrets } from '../effects/step-secrets.ts';
import type { AdmitChild, ChildRequest } from '../starts/child-runs.ts';
import type { RunScheduler } from '../starts/run-starter.ts';

/** Lease of this process on its runs. */
export interface Lease {
  /** False while another process may have taken over the runs of this process. */
  readonly isHeld: boolean;
}

/** The processes that share the runs of the store. */
export interface Cluster extends Lease {
  store: SharedRunStore;
  member: Pick<MemberRecord, 'instance' | 'fence'>;
  /** Returns whether another process is alive. */
  hasOthers(): Promise<boolean>;
  /** Registers work that recovers the runs of ended processes. */
  onEnded(recover: () => Promise<void>): void;
  /** Calls `lost` when another process has declared this process dead. */
  onLost(lost: () => void): void;
  /** Lets the process with this fence read the notices for its runs. Resolves to false if it cannot be reached. */
  notify(fence: number): Promise<boolean>;
}

export interface EngineDeps {
  store: WorkflowStore;
  clock: Clock;
  random: Random;
  logger: Logger;
  tracer?: Tracer | undefined;
  /** Returns the definition with this hash. Throws if the definition can no longer be read or compiled. */
  definitionOf(hash: string): Promise<CompiledWorkflow>;
  cachedDefinition(hash: string): CompiledWorkflow | undefined;
  admitChild: AdmitChild;
  evaluator: Evaluator;
  replays: Replays;
  stepSecrets: StepSecrets;
  pluginWaits: PluginWaits;
  limits: EngineLimits;
  hooks: EngineHooks;
  /** Undefined if no other process executes runs of the store. */
  cluster?: Cluster | undefined;
  /** Whether this process owns the data file exclusively. No earlier service process is then alive. */
  exclusive: boolean;
  /** Whether the previous service process crashed, as opposed to being killed from outside. */
  hadFault: boolean;
  /** Returns the number of OOM kills that the kernel has counted. Returns null if the number is unavailable. */
  oomKills(): number | null;
}

export interface EngineLimits {
  /** Maximum number of runs in memory. */
  runs: number;
  /** Maximum number of steps in flight. */
  steps: number;
  /**
   * Number of service crashes after which a run with work in flight fails. Progress of the run resets the count. Ten
   * kills count as one crash.
   */
  poisonAfter: number;
  leaseMs: number;
  /** Default time limit for the clean-up of a cancelled or timed-out run. */
  cleanUpMs: number;
  /** Maximum time that the clean-up of a run waits for an unavailable plugin. */
  maxPluginWaitMs: number;
  /** Maximum output size of a step or run, in characters of JSON. */
  maxOutputChars: number;
}

export interface JobCounts {
  total: number;
  failed: number;
}

export interface EngineHooks {
  jobStarted(): void;
  jobEnded(): void;
  /** Reports the end of a run. `jobs` is set only if the run was in memory when the run ended. */
  ended(run: RunRecord, jobs?: JobCounts): void;
  /** Reports a change of a run to the clients that watch the run. */
  changed(runId: string): void;
  /**
   * Reports that another service process has fenced this process. The store then rejects the writes of this process.
   */
  fenced(): void;
}

/** Methods of the engine that the engine's components call. */
export interface EngineHost {
  /** Fence token of this service process. */
  readonly fence: number;
  readonly startedAt: number;
  /** Whether the engine claims runs. The value is false before the engine starts and after the engine stops. */
  readonly isWorking: boolean;
  ended(run: RunRecord, jobs?: JobCounts): void;
  /** Makes a waiting run due at once. Used for events that arrive while the run is being unloaded from memory. */
  wake(runId: string): Promise<void>;
  /** Schedules a check for due runs at the time `at`. */
  notice(at: number): void;
  /** Checks for due runs now, because more runs might be due or a slot might be free. */
  requestTick(): void;
  offer(run: RunRecord, fresh: boolean): void;
  /** Cancels a run. On failure, returns false and schedules a retry. */
  cancelById(runId: string): Promise<boolean>;
  cancelChildren(runId: string): Promise<void>;
  supersede(ids: readonly string[]): Promise<void>;
  /** Starts and queues the child run of a step. Resolves with the run id of the child. */
  startChild(request: ChildRequest): Promise<string>;
}

export type CancelResult = { cancelled: boolean; status: RunStatus };

/** Pauses and resumes runs and workflows. */
export interface EnginePauses {
  /** Throws CONFLICT if the run has ended or is being cancelled. */
  pause(run: RunRecord): Promise<RunRecord>;
  /** Does nothing if the run is not paused. */
  resume(run: RunRecord): Promise<RunRecord>;
  pauseWorkflow(workflow: TenantWorkflow): Promise<void>;
  resumeWorkflow(workflow: TenantWorkflow): Promise<void>;
}

/** Claims, advances and wakes runs, and recovers the runs of a crashed daemon. @spec Workflow daemon; Workflow run */
export interface Engine extends RunScheduler {
  readonly pausing: EnginePauses;
  /**
   * Recovers interrupted runs. Claims of runs begin one event loop turn later, so that the caller can report readiness
   * first.
   */
  start(): Promise<void>;
  /**
   * Cancels a run. A run that ended for another reason keeps its status. Throws WORKFLOW_ALREADY_CANCELLED if the run
   * is already cancelled or being cancelled.
   */
  cancel(run: RunRecord): Promise<CancelResult>;
  /**
   * Delivers an inbox entry. Ignores a repeat with the same key and digest. Throws CONFLICT if the run cannot take the
   * entry, for example because the run has ended.
   */
  deliver(
    run: RunRecord,
    entry: Omit<InboxRecord, 'n' | 'takenBy'>,
    options: { once: boolean; repeat?: { key: string; digest: string } | undefined },
  ): Promise<void>;
  /** Reads the notices and cancel requests that other processes have stored for runs of this process. */
  readNotices(): Promise<void>;
  /** Resumes runs that wait for a plugin. Called after a plugin reload. */
  pluginsChanged(): Promise<void>;
  /** Claims due runs, then calls the `onTick` callbacks. */
  tick(): Promise<void>;
  /** Registers a callback that runs at least once a second. The callback returns the time of its next call. */
  onTick(look: (now: number) => Promise<number | null>): void;
  /** Waits up to `drainMs` for in-flight steps, then abandons the remaining steps. */
  stop(drainMs: number): Promise<void>;
  readonly activeRuns: number;
  /** Fence token of this boot. */
  readonly fence: number;
}
