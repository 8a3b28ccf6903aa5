import { join } from 'node:path';
import { postgresUrlOf } from '../../kit/config/store-url.ts';
import { instanceId } from '../../kit/files/instance-id.ts';
import { oomKills } from '../../kit/process/oom-kills.ts';
import type { Clock } from '../../kit/time/clock.ts';
import { days, seconds } from '../../kit/time/duration.ts';
import { openWorkflowStore } from '../../store/open-store.ts';
import type { WorkflowStore } from '../../store/ports/index.ts';
import { acquireOwnerLock, WORKFLOW_FILE } from '../../store/sqlite/index.ts';
import type { DaemonServices, Resources } from '../define-daemon.ts';
import { joinMembers } from '../membership/join-members.ts';
import type { Membership } from '../membership/membership.ts';
import type { Reread } from '../plugin-runtime/reread.ts';
import { PluginRuntime } from '../plugin-runtime/runtime.ts';
import { followPlugins, openSharedPlugins } from '../plugin-runtime/shared/open-shared-plugins.ts';
import { createPoolMetrics } from '../postgres-metrics.ts';
import { clusterOf } from './cluster.ts';
import { definitionServices } from './definition-services.ts';
import { ReplayRoutes, Replays } from './domain/code/replays.ts';
import type { Definitions } from './domain/definition/definitions.ts';
import { SecretApprovals } from './domain/definition/secret-approvals.ts';
import { startHousekeeping } from './domain/housekeeping.ts';
import { createApprovalCheck } from './domain/runs/approval-check.ts';
import { BulkRuns } from './domain/runs/bulk-runs.ts';
import { Decisions } from './domain/runs/decisions.ts';
import { Jobs } from './domain/runs/jobs.ts';
import { Pauses } from './domain/runs/pauses.ts';
import { Reruns } from './domain/runs/reruns.ts';
import { RunExports } from './domain/runs/run-exports.ts';
import type { RunWatch } from './domain/runs/run-watch.ts';
import { Runs } from './domain/runs/runs.ts';
import { createSignalCheck } from './domain/runs/signal-check.ts';
import { Traces } from './domain/runs/traces.ts';
import { type EngineServices, engineServices } from './engine-services.ts';
import { createLogTee, pluginHandlers } from './plugin-handlers.ts';
import { RemoteReplays } from './remote-replays.ts';
import { RunOwners } from './run-owners.ts';
import { localSteps, runReplay } from './run-replay.ts';
import { scriptServices } from './script-services.ts';
import { startServices } from './start-services.ts';

/**
 * Maximum time to wait for the lock of the data file. After a restart, the previous process can hold the lock for a
 * short time.
 */
const LOCK_WAIT_MS = seconds(5);

export interface WorkflowServices extends DaemonServices {
  metrics: EngineServices['metrics'];
  membership: Membership;
  plugins: PluginRuntime;
  reread: Reread;
  internalSecret: string;
  replays: Replays;
  remoteReplays: RemoteReplays;
  runs: Runs;
  traces: Traces;
  runExports: RunExports;
  reruns: Reruns;
  bulkRuns: BulkRuns;
  decisions: Decisions;
  pauses: Pauses;
  jobs: Jobs;
  schedules: Awaited<ReturnType<typeof startServices>>['schedules'];
  definitions: Definitions;
  secretApprovals: SecretApprovals;
  engine: EngineServices['engine'];
  starter: Awaited<ReturnType<typeof startServices>>['starter'];
  triggers: Awaited<ReturnType<typeof startServices>>['triggers'];
  endHandlers: Awaited<ReturnType<typeof startServices>>['endHandlers'];
  watch: RunWatch;
  clock: Clock;
  facts: WorkflowStore['facts'];
  waitingApprovals: WorkflowStore['waitingApprovals'];
  /** Stops claiming runs and waits up to `workflow.drainMs` for in-flight steps. */
  drain(): Promise<void>;
}

/** Opens the store and builds the services. Throws CONFLICT if another process owns `workflow.db`. */
export async function workflowServices(
  resources: Resources,
  stack: AsyncDisposableStack,
): Promise<WorkflowServices> {
  const { clock, keys } = resources;
  const store = await openStore(resources, stack);
  await recordCrash(resources, store);
  const joining = { kind: 'workflow', release: null, keys: null } as const;
  const membership = await joinMembers(resources, store.members, joining, stack);
  const { instance, fence } = membership;
  const node = resources.sharesStore ? { instance, fence } : undefined;
  const tee = createLogTee(resources.logger);
  const routes = new ReplayRoutes();
  const shared = await openSharedPlugins('workflow', resources, stack);
  const plugins = stack.adopt(
    await PluginRuntime.open({ ...resources, logger: tee.logger }, { steps: localSteps(routes) }),
    (opened) => opened.close(),
  );
  const handlers = pluginHandlers(plugins, tee);
  const replays = new Replays((call) => runReplay(handlers, call), routes);
  startRetention(resources, store, stack);
  const scripts = scriptServices(resources, store, stack);
  const defined = definitionServices(resources, { store, plugins, handlers, scripts }, stack);
  const { definitions, evaluator, checkCodeInput } = defined;
  const owners = ownersOf(resources, store);
  const cluster =
    store.shared && owners && clusterOf({ ...resources, store: store.shared, owners, membership });
  const { engine, drain, onRunEnded, ...observed } = engineServices(
    resources,
    { ...defined, store, cluster, replays, scripts },
    stack,
  );
  const starts = await startServices(resources, { ...defined, store, node, plugins, engine }, stack);
  const { starter, endHandlers } = starts;
  onRunEnded((run) => endHandlers.ended(run));
  await followPlugins(shared, { runtime: plugins, fence }, stack);
  const runs = new Runs({
    ...{ store: store.runs, engine, starter, definitions, clock },
    checkApproval: createApprovalCheck(evaluator),
    signalCheck: createSignalCheck({ definitions, evaluator, checkCode: checkCodeInput }),
  });
  const reruns = new Reruns({ store: store.runs, starter, definitions });
  return {
    ...{ membership, plugins, replays, clock, engine, definitions },
    ...observed,
    ...starts,
    async drain() {
      await Promise.all([endHandlers.stop(), drain()]);
    },
    reread: () => plugins.upToDate(),
    remoteReplays: new RemoteReplays({ runs: store.runs, owners, engine }),
    internalSecret: keys.internalSecret,
    facts: store.facts,
    waitingApprovals: store.waitingApprovals,
    probeStore: () => store.probe(),
    withdraw: () => membership.withdraw(),
    decisions: new Decisions({ store: store.runs, definitions, engine, clock }),
    ...{ runs, reruns },
    pauses: new Pauses({ runs: store.runs, store: store.pauses, pausing: engine.pausing, definitions }),
    secretApprovals: new SecretApprovals({ store: store.approvals, definitions, clock }),
    traces: new Traces({ store: store.runs, runs }),
    runExports: new RunExports({ store: store.runs, runs, clock }),
    bulkRuns: new BulkRuns({ store: store.runs, runs, reruns, clock, random: resources.random }),
    jobs: new Jobs({ store: store.runs, engine, starter, definitions, handlers }),
  };
}

/** Returns the access to the services that execute other runs of the store, or undefined if there can be none. */
function ownersOf({ keys, env, advertise }: Resources, store: WorkflowStore): RunOwners | undefined {
  const { shared, members } = store;
  return shared && new RunOwners({ keys, env, advertise, runs: shared, members });
}

async function openStore(
  { config, env, dataDir, logger, metrics, clock, sharesStore }: Resources,
  stack: AsyncDisposableStack,
): Promise<WorkflowStore> {
  const file = join(dataDir, WORKFLOW_FILE);
  if (!sharesStore)
    stack.adopt(await acquireOwnerLock({ file, waitMs: LOCK_WAIT_MS, label: 'workflow' }), (lock) =>
      lock.release(),
    );
  const postgresUrl = postgresUrlOf(config.store, env);
  const store = stack.adopt(await openWorkflowStore({ postgresUrl, dataDir, logger, clock }), (opened) =>
    opened.close(),
  );
  createPoolMetrics(metrics, store.monitor);
  return store;
}

/** Other nodes take over the runs of the previous process once this one has joined the members. */
async function recordCrash(
  { dataDir, env, random, hadFault = false }: Resources,
  { shared }: WorkflowStore,
): Promise<void> {
  const instance = instanceId(dataDir, env, random);
  await shared?.recordCrash({ instance, hadFault, oomKills: oomKills() });
}

function startRetention(
  { clock, logger, config }: Resources,
  store: WorkflowStore,
  stack: AsyncDisposableStack,
): void {
  const keepMs = days(config.retention.runsDays);
  stack.adopt(startHousekeeping({ store, clock, logger, keepMs }), (started) => started.stop());
}
