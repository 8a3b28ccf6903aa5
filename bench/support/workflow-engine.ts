import { Membership } from '../../src/daemons/membership/membership.ts';
import { clusterOf } from '../../src/daemons/workflow/cluster.ts';
import { Replays } from '../../src/daemons/workflow/domain/code/replays.ts';
import { Definitions } from '../../src/daemons/workflow/domain/definition/definitions.ts';
import { createEvaluator } from '../../src/daemons/workflow/domain/definition/evaluator.ts';
import { PluginWaits } from '../../src/daemons/workflow/domain/effects/plugin-waits.ts';
import { StepSecrets } from '../../src/daemons/workflow/domain/effects/step-secrets.ts';
import { WorkflowEngine } from '../../src/daemons/workflow/domain/engine/engine.ts';
import type { Cluster, Engine } from '../../src/daemons/workflow/domain/engine/ports.ts';
import { RunStarter } from '../../src/daemons/workflow/domain/starts/run-starter.ts';
import { setStep } from '../../src/daemons/workflow/domain/steps/kinds/builtins.ts';
import type { StepKind } from '../../src/daemons/workflow/domain/steps/step-kind.ts';
import { EvaluationThreads } from '../../src/daemons/workflow/evaluation/threads.ts';
import { systemRandom } from '../../src/kit/security/random.ts';
import { silentLogger } from '../../src/kit/telemetry/logger.ts';
import { systemClock } from '../../src/kit/time/clock.ts';
import { days } from '../../src/kit/time/duration.ts';
import type { RunRecord, WorkflowStore } from '../../src/store/ports/index.ts';

const STARTER = { tenantId: 'default', hostId: 'bench', requestId: 'bench', traceId: 'bench' };
const random = systemRandom();

const LIMITS = {
  runs: 500,
  steps: 64,
  poisonAfter: 3,
  cleanUpMs: 60_000,
  maxPluginWaitMs: days(30),
  leaseMs: 30_000,
  maxOutputChars: 1024 * 1024,
};

export interface BenchEngine {
  begun: Map<string, (at: number) => void>;
  ended: Map<string, () => void>;
  /** Returns a function that starts a run and resolves with its id. Steps: `set`, `noop` and `once`. */
  starter(kind: 'workflow' | 'job', steps: readonly string[]): () => Promise<string>;
  close(): Promise<void>;
}

/** The engine and its store, without HTTP. Closing the engine closes the store. */
export async function openEngine(store: WorkflowStore): Promise<BenchEngine> {
  const ended = new Map<string, () => void>();
  const begun = new Map<string, (at: number) => void>();
  const effect = (name: string, repeats: boolean): StepKind => ({
    ...setStep,
    name,
    mode: 'effect',
    isIdempotent: () => repeats,
    run({ run }) {
      begun.get(run.id)?.(performance.now());
      return Promise.resolve({ output: null });
    },
  });
  const kinds = new Map(
    [setStep, effect('noop', true), effect('once', false)].map((kind) => [kind.name, kind]),
  );
  const definitions = new Definitions({ kindOf: (uses) => kinds.get(uses), find: store.definition });
  const threads = new EvaluationThreads();
  const evaluator = createEvaluator(threads);
  const membership = await join(store);
  const engine: Engine = new WorkflowEngine({
    ...{ store, evaluator, random, clock: systemClock, logger: silentLogger, limits: LIMITS },
    cluster: clusterFor(store, membership),
    exclusive: !store.shared,
    hadFault: false,
    oomKills: () => null,
    definitionOf: (hash) => definitions.byHash(hash),
    cachedDefinition: (hash) => definitions.cached(hash),
    async admitChild() {
      throw new Error('Child runs are not measured here.');
    },
    replays: new Replays(async () => {
      throw new Error('Workflows in code are not measured here.');
    }),
    stepSecrets: new StepSecrets({ approvals: store.approvals, read: async () => new Map() }),
    pluginWaits: new PluginWaits({
      ...{ clock: systemClock, logger: silentLogger },
      alertMs: 600_000,
      counted: () => {},
    }),
    hooks: {
      jobStarted: () => {},
      jobEnded: () => {},
      changed: () => {},
      fenced: () => {},
      ended(run: RunRecord) {
        ended.get(run.id)?.();
        ended.delete(run.id);
      },
    },
  });
  await engine.start();
  const starter = new RunStarter({
    ...{ store: store.runs, engine, random, evaluator, clock: systemClock, tenants: {} },
    checkCodeInput: async () => {},
    requireScripts: async () => {},
  });
  return {
    begun,
    ended,
    starter(kind, steps) {
      const jobs = { main: { steps: steps.map((uses) => ({ uses })) } };
      const workflow = definitions.compile({ id: 'bench', jobs });
      const trigger = kind === 'job' ? 'job' : 'manual';
      return async () => (await starter.start({ kind, workflow, input: {}, trigger }, STARTER)).id;
    },
    async close() {
      await engine.stop(1000);
      await threads.close();
      await membership.leave();
      await store.close();
    },
  };
}

function join(store: WorkflowStore): Promise<Membership> {
  const member = {
    kind: 'workflow',
    release: null,
    keys: null,
    version: 'bench',
    instance: 'bench',
    replaces: 'bench',
  } as const;
  return Membership.join({
    ...{ store: store.members, clock: systemClock, logger: silentLogger },
    member: { ...member, isSole: !store.shared },
    onLost(error) {
      throw error;
    },
  });
}

function clusterFor({ shared }: WorkflowStore, membership: Membership): Cluster | undefined {
  // There is no other process whose runs this one could be asked about.
  const owners = { clientOf: async () => undefined };
  return shared && clusterOf({ store: shared, owners, membership, logger: silentLogger });
}
