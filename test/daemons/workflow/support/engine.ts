import { Replays, type RunReplay } from '../../../../src/daemons/workflow/domain/code/replays.ts';
import { Definitions } from '../../../../src/daemons/workflow/domain/definition/definitions.ts';
import {
  type ConfinedThreads,
  createEvaluator,
  type Evaluator,
} from '../../../../src/daemons/workflow/domain/definition/evaluator.ts';
import { PluginWaits } from '../../../../src/daemons/workflow/domain/effects/plugin-waits.ts';
import { StepSecrets } from '../../../../src/daemons/workflow/domain/effects/step-secrets.ts';
import { WorkflowEngine } from '../../../../src/daemons/workflow/domain/engine/engine.ts';
import type { Engine } from '../../../../src/daemons/workflow/domain/engine/ports.ts';
import { childRuns } from '../../../../src/daemons/workflow/domain/starts/child-runs.ts';
import { RunAdmission } from '../../../../src/daemons/workflow/domain/starts/run-admission.ts';
import { RunStarter } from '../../../../src/daemons/workflow/domain/starts/run-starter.ts';
import { setStep } from '../../../../src/daemons/workflow/domain/steps/kinds/builtins.ts';
import type { StepKind } from '../../../../src/daemons/workflow/domain/steps/step-kind.ts';
import { EvaluationThreads } from '../../../../src/daemons/workflow/evaluation/threads.ts';
import { systemRandom } from '../../../../src/kit/security/random.ts';
import { silentLogger } from '../../../../src/kit/telemetry/logger.ts';
import { type Clock, systemClock } from '../../../../src/kit/time/clock.ts';
import type { WorkflowStore } from '../../../../src/store/ports/index.ts';
import { sqliteWorkflowStore } from '../../../../src/store/sqlite/index.ts';

export interface BareEngine {
  store: WorkflowStore;
  engine: Engine;
  /** Starts a run of one job `main`. */
  begin(steps: object[], tenantId?: string): Promise<string>;
  beginDefinition(definition: object, tenantId?: string): Promise<string>;
  definitions: Definitions;
  starter: RunStarter;
  close(): Promise<void>;
}

/** An engine over `workflow.db` without the daemon, and without the lock of the file: another may be at work on it. */
export async function openEngine(options: {
  dataDir: string;
  kinds: StepKind[];
  leaseMs?: number;
  clock?: Clock;
  runs?: number;
  /** Slots for steps. */
  steps?: number;
  /** Whether the file is this engine's alone, so that every earlier one is dead. */
  exclusive?: boolean;
  /** Stands in front of the evaluator. */
  wrapEvaluator?(evaluator: Evaluator): Evaluator;
  /** Whether the one before died of a fault of its own. */
  hadFault?: boolean;
  /** Runs the functions of workflows in code; default: none. */
  runReplay?(call: Parameters<RunReplay>[0], replays: Replays): ReturnType<RunReplay>;
  /** Evaluates in place of the threads. */
  threads?: ConfinedThreads;
  /** Stands in front of the store. */
  wrap?(store: WorkflowStore): WorkflowStore;
  /** Reads definitions in place of the store. */
  find?(hash: string, store: WorkflowStore): ReturnType<WorkflowStore['definition']>;
  onFenced?(): void;
}): Promise<BareEngine> {
  const { dataDir, clock = systemClock, leaseMs = 30_000, runs = 500 } = options;
  const random = systemRandom(() => clock.now());
  const opened = await sqliteWorkflowStore({ dataDir, logger: silentLogger });
  const store = options.wrap?.(opened) ?? opened;
  const kinds = new Map([setStep, ...options.kinds].map((kind) => [kind.name, kind]));
  const definitions = new Definitions({
    kindOf: (uses) => kinds.get(uses),
    find: options.find ? (hash) => options.find!(hash, store) : store.definition,
  });
  const threads = options.threads ?? new EvaluationThreads();
  const made = createEvaluator(threads);
  const evaluator = options.wrapEvaluator?.(made) ?? made;
  const replays: Replays = new Replays(async (call) => {
    if (options.runReplay) return options.runReplay(call, replays);
    throw new Error('This engine has no plugins.');
  });
  const admission = {
    store: store.runs,
    clock,
    random,
    tenants: {},
    evaluator,
    checkCodeInput: async () => {},
    requireScripts: async () => {},
  };
  const engine = new WorkflowEngine({
    store,
    clock,
    random,
    logger: silentLogger,
    exclusive: options.exclusive ?? false,
    hadFault: options.hadFault ?? false,
    oomKills: () => null,
    definitionOf: (hash) => definitions.byHash(hash),
    cachedDefinition: (hash) => definitions.cached(hash),
    admitChild: childRuns({ runs: store.runs, definitions, admission: new RunAdmission(admission) }),
    evaluator,
    replays,
    stepSecrets: new StepSecrets({ approvals: store.approvals, read: async () => new Map() }),
    pluginWaits: new PluginWaits({ clock, logger: silentLogger, alertMs: 600_000, counted: () => {} }),
    limits: {
      runs,
      steps: options.steps ?? 64,
      poisonAfter: 3,
      cleanUpMs: 60_000,
      maxPluginWaitMs: 86_400_000,
      leaseMs,
      maxOutputChars: 1e6,
    },
    hooks: {
      jobStarted: () => {},
      jobEnded: () => {},
      changed: () => {},
      ended: () => {},
      fenced: () => options.onFenced?.(),
    },
  });
  const starter = new RunStarter({ ...admission, engine });
  async function beginDefinition(definition: object, tenantId = 'default'): Promise<string> {
    const workflow = definitions.compile(definition);
    const who = { tenantId, hostId: 'test', requestId: 'r', traceId: 't' };
    return (await starter.start({ kind: 'workflow', workflow, input: {}, trigger: 'manual' }, who)).id;
  }
  return {
    store,
    engine,
    definitions,
    starter,
    begin: (steps, tenantId) => beginDefinition({ id: 'bare', jobs: { main: { steps } } }, tenantId),
    beginDefinition,
    async close() {
      await engine.stop(500);
      await threads.close();
      await store.close();
    },
  };
}

/** A step that calls `work`. */
export function workStep(name: string, work: (stepId: string) => Promise<void>, idempotent = true): StepKind {
  return {
    ...setStep,
    name,
    mode: 'effect',
    isIdempotent: () => idempotent,
    async run({ stepId }) {
      await work(stepId);
      return { output: null };
    },
  };
}
