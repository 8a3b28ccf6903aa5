import { LIMITS } from '../../contracts/index.ts';
import { oomKills } from '../../kit/process/oom-kills.ts';
import { days, seconds } from '../../kit/time/duration.ts';
import type { RunRecord, WorkflowStore } from '../../store/ports/index.ts';
import type { Resources } from '../define-daemon.ts';
import { createSecretAccess } from '../plugin-runtime/access/secrets.ts';
import type { DefinitionServices } from './definition-services.ts';
import type { Replays } from './domain/code/replays.ts';
import { PluginWaits } from './domain/effects/plugin-waits.ts';
import { type ReadSecrets, StepSecrets } from './domain/effects/step-secrets.ts';
import { WorkflowEngine } from './domain/engine/engine.ts';
import type { Cluster } from './domain/engine/ports.ts';
import { RunWatch } from './domain/runs/run-watch.ts';
import { childRuns } from './domain/starts/child-runs.ts';
import { RunAdmission } from './domain/starts/run-admission.ts';
import { createWorkflowMetrics } from './metrics.ts';
import { reportRunEnd } from './run-end.ts';
import type { ScriptServices } from './script-services.ts';

const LEASE_MS = seconds(30);

export interface EngineServicesDeps {
  store: WorkflowStore;
  cluster: Cluster | undefined;
  definitions: DefinitionServices['definitions'];
  evaluator: DefinitionServices['evaluator'];
  checkCodeInput: DefinitionServices['checkCodeInput'];
  replays: Replays;
  requireScripts: DefinitionServices['requireScripts'];
  scripts: Pick<ScriptServices, 'workspaces'>;
}

/** Builds the engine and the metrics, traces and alerts of its runs. */
export function engineServices(
  resources: Resources,
  { store, cluster, definitions, evaluator, replays, scripts, ...checks }: EngineServicesDeps,
  stack: AsyncDisposableStack,
) {
  const { config, clock, random, logger, analytics, tracer } = resources;
  const metrics = createWorkflowMetrics(resources.metrics);
  const watch = new RunWatch();
  const pluginWaits = stack.adopt(
    new PluginWaits({
      ...{ clock, logger },
      alertMs: config.workflow.pluginAlertMs,
      counted: metrics.waitForPlugin,
    }),
    (made) => made.close(),
  );
  const admission = new RunAdmission({
    ...{ store: store.runs, clock, random, evaluator, ...checks },
    tenants: config.tenants,
  });
  const ended: Array<(run: RunRecord) => void> = [];
  const engine = new WorkflowEngine({
    ...{ store, clock, random, logger, tracer, evaluator, replays, pluginWaits, oomKills },
    cluster,
    exclusive: !resources.sharesStore,
    hadFault: resources.hadFault ?? false,
    definitionOf: (hash) => definitions.byHash(hash),
    cachedDefinition: (hash) => definitions.cached(hash),
    admitChild: childRuns({ runs: store.runs, definitions, admission }),
    stepSecrets: new StepSecrets({ approvals: store.approvals, read: readSecrets(resources) }),
    limits: {
      runs: config.workflow.maxRunningRuns,
      steps: config.workflow.maxRunningSteps,
      poisonAfter: config.workflow.poisonAfter,
      leaseMs: LEASE_MS,
      cleanUpMs: config.workflow.cleanUpTimeoutMs,
      maxPluginWaitMs: days(config.retention.runsDays),
      maxOutputChars: LIMITS.stepOutputChars,
    },
    hooks: {
      jobStarted: metrics.jobStarted,
      jobEnded: metrics.jobEnded,
      changed: (runId) => watch.changed(runId),
      ended(run, jobs) {
        void scripts.workspaces.close(run.id);
        void reportRunEnd(run, jobs, { store, metrics, analytics, logger, clock, tracer });
        for (const listener of ended) listener(run);
      },
      fenced: () => process.kill(process.pid, 'SIGTERM'),
    },
  });
  let draining: Promise<void> | undefined;
  const drain = (): Promise<void> => {
    draining ??= engine.stop(config.workflow.drainMs);
    return draining;
  };
  stack.defer(drain);
  const onRunEnded = (listener: (run: RunRecord) => void): void => void ended.push(listener);
  return { metrics, watch, engine, drain, onRunEnded };
}

function readSecrets(resources: Resources): ReadSecrets {
  const access = createSecretAccess(resources);
  return ({ tenantId, requestId, traceId }, names, signal) =>
    access.read({ tenantId, user: null, requestId, traceId, signal }, names);
}

export type EngineServices = ReturnType<typeof engineServices>;
