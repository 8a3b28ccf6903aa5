import { join } from 'node:path';
import { LIMITS } from '../../contracts/index.ts';
import { PlatformError } from '../../kit/errors/errors.ts';
import { oomKills } from '../../kit/process/oom-kills.ts';
import type { Clock } from '../../kit/time/clock.ts';
import { days, seconds } from '../../kit/time/duration.ts';
import type { WorkflowStore } from '../../store/ports/index.ts';
import { acquireOwnerLock, sqliteWorkflowStore, WORKFLOW_FILE } from '../../store/sqlite/index.ts';
import type { DaemonServices, Resources } from '../define-daemon.ts';
import { createReread, type Reread } from '../plugin-runtime/reread.ts';
import { createPluginRuntime, type PluginRuntime } from '../plugin-runtime/runtime.ts';
import { watchSources } from '../plugin-runtime/source-watch.ts';
import { codeInputCheck } from './code-input.ts';
import { createPassDesk, type PassDesk } from './domain/code/pass-desk.ts';
import { createDefinitions, type Definitions } from './domain/definition/definitions.ts';
import { createEvaluator } from './domain/definition/evaluator.ts';
import { Decisions } from './domain/desks/decisions.ts';
import { createJobDesk, type JobDesk } from './domain/desks/job-desk.ts';
import { createRunDesk, type RunDesk } from './domain/desks/run-desk.ts';
import { createRunWatch, type RunWatch } from './domain/desks/run-watch.ts';
import { createSignalCheck } from './domain/desks/signal-check.ts';
import { createEngine } from './domain/engine/engine.ts';
import type { Engine } from './domain/engine/engine-ports.ts';
import { PluginWaits } from './domain/engine/plugin-waits.ts';
import { startHousekeeping } from './domain/housekeeping.ts';
import { createRunStarter, type RunStarter } from './domain/starts/run-starter.ts';
import { createSchedules, type Schedules } from './domain/starts/schedules.ts';
import { createTriggers, type Triggers } from './domain/starts/triggers.ts';
import { isFinal } from './domain/states.ts';
import type { ChildStarter } from './domain/steps/kinds/builtins.ts';
import { createEvaluationThreads } from './evaluation/threads.ts';
import { guardedHttp } from './guarded-http.ts';
import { knownPlugin } from './manifest-faults.ts';
import { createWorkflowMetrics, type WorkflowMetrics } from './metrics.ts';
import { createLogTee, pluginHandlers } from './plugin-handlers.ts';
import { registerAll } from './register-all.ts';
import { reportRunEnd } from './run-end.ts';
import { localSteps, runPass } from './run-pass.ts';
import { stepKinds } from './step-kinds.ts';
import { workflowFileStamps } from './workflow-files.ts';

/** Maximum wait for the lock: after a restart, the predecessor may still be writing. */
const LOCK_WAIT_MS = seconds(5);
const LEASE_MS = seconds(30);

export interface WorkflowServices extends DaemonServices {
  metrics: WorkflowMetrics;
  plugins: PluginRuntime;
  reread: Reread;
  internalSecret: string;
  passes: PassDesk;
  desk: RunDesk;
  decisions: Decisions;
  jobs: JobDesk;
  schedules: Schedules;
  definitions: Definitions;
  engine: Engine;
  starter: RunStarter;
  triggers: Triggers;
  watch: RunWatch;
  clock: Clock;
  /** Lets in-flight steps finish, within `workflow.drainMs`; no further run is claimed. */
  drain(): Promise<void>;
  close(): Promise<void>;
}

/** Opens `workflow.db` as its only owner and builds the services. Throws CONFLICT when another process owns it. */
export async function workflowServices(resources: Resources): Promise<WorkflowServices> {
  const { dataDir, logger } = resources;
  const lock = await acquireOwnerLock({
    file: join(dataDir, WORKFLOW_FILE),
    waitMs: LOCK_WAIT_MS,
    label: 'workflow',
  });
  const opened: Array<() => Promise<void> | void> = [() => lock.release()];
  try {
    const store = await sqliteWorkflowStore({ dataDir, logger });
    opened.unshift(() => store.close());
    const tee = createLogTee(logger);
    const passes = createPassDesk((call) => runPass(handlers, call));
    const plugins = await createPluginRuntime(
      { ...resources, logger: tee.logger },
      { steps: localSteps(passes) },
    );
    opened.unshift(() => plugins.close());
    const handlers = pluginHandlers(plugins, tee);
    const parts = await assemble(resources, store, plugins, handlers, passes);
    return {
      ...parts,
      async close() {
        await parts.stop();
        for (const close of opened) await close();
      },
    };
  } catch (error) {
    for (const close of opened) await close();
    throw error;
  }
}

async function assemble(
  resources: Resources,
  store: WorkflowStore,
  plugins: PluginRuntime,
  handlers: ReturnType<typeof pluginHandlers>,
  passes: PassDesk,
) {
  const { config, clock, random, logger, analytics, tracer, group, keys } = resources;
  const metrics = createWorkflowMetrics(resources.metrics);
  const watch = createRunWatch();
  const late: { starter?: RunStarter } = {};
  const children = childStarter(
    store,
    () => late.starter!,
    (id) => definitions.require(id),
  );
  const kindOf = stepKinds({
    http: guardedHttp(config.workflow.httpAllow, clock),
    handlers,
    children,
    now: clock.now,
  });
  const definitions = createDefinitions({
    kindOf,
    find: store.definition,
    findPlugin(id) {
      const plugin = plugins.registry.find(id);
      return plugin && knownPlugin(plugin.manifest);
    },
  });
  const threads = createEvaluationThreads();
  const evaluator = createEvaluator(threads);
  const pluginWaits = new PluginWaits({
    ...{ clock, logger },
    alertMs: config.workflow.pluginAlertMs,
    counted: metrics.waitForPlugin,
  });
  const engine = createEngine({
    store,
    clock,
    random,
    logger,
    tracer,
    exclusive: true,
    hadFault: resources.hadFault ?? false,
    oomKills,
    definitionOf: definitions.byHash,
    definitionHere: definitions.here,
    evaluator,
    passes,
    pluginWaits,
    limits: {
      runs: config.workflow.maxRunningRuns,
      steps: config.workflow.maxRunningSteps,
      poisonAfter: config.workflow.poisonAfter,
      leaseMs: LEASE_MS,
      cleanUpMs: config.workflow.cleanUpTimeoutMs,
      maxPluginWaitMs: days(config.retention.runsDays),
      mostOutput: LIMITS.stepOutputChars,
    },
    hooks: {
      jobStarted: metrics.jobStarted,
      jobEnded: metrics.jobEnded,
      changed: watch.changed,
      ended: (run, jobs) =>
        void reportRunEnd(run, jobs, { store, metrics, analytics, logger, clock, tracer }),
      fenced: () => process.kill(process.pid, 'SIGTERM'),
    },
  });
  const checkCodeInput = codeInputCheck(plugins, logger);
  const starter = createRunStarter({
    store: store.runs,
    engine,
    clock,
    random,
    tenants: config.tenants,
    evaluator,
    checkCodeInput,
  });
  late.starter = starter;
  const triggers = createTriggers({ definitions, starter, evaluator, logger });
  const planned = await registerAll(resources, plugins, definitions, logger);
  const schedules = createSchedules({
    store: store.schedules,
    runs: store.runs,
    starter,
    definitions,
    clock,
    random,
    logger,
  });
  await schedules.sync(planned);
  const registerAnew = async (): Promise<void> =>
    schedules.sync(await registerAll(resources, plugins, definitions, logger));
  const stopListening = plugins.onReload(async () => {
    try {
      await registerAnew();
    } catch (error) {
      logger.error('The workflows could not be registered anew after plugins changed', { error });
    }
    await engine.pluginsChanged();
  });
  const fileWatch = await watchSources({
    stamp: () => workflowFileStamps(resources.projectDir, config.workflows),
    changed: registerAnew,
    logger,
  });
  engine.onTick(schedules.serve);
  const housekeeping = startHousekeeping({ store, clock, logger, keepMs: days(config.retention.runsDays) });
  let draining: Promise<void> | undefined;
  const drain = (): Promise<void> => {
    draining ??= engine.stop(config.workflow.drainMs);
    return draining;
  };
  return {
    drain,
    metrics,
    plugins,
    reread: createReread(plugins, group),
    internalSecret: keys.internalSecret,
    passes,
    watch,
    clock,
    engine,
    starter,
    definitions,
    triggers,
    schedules,
    decisions: new Decisions({ store: store.runs, definitions, engine, clock }),
    desk: createRunDesk({
      ...{ store: store.runs, engine, starter, definitions, clock },
      checkSignal: createSignalCheck({ definitions, evaluator, checkCode: checkCodeInput }),
    }),
    jobs: createJobDesk({ store: store.runs, engine, starter, definitions, handlers }),
    async stop() {
      stopListening();
      fileWatch.close();
      await drain();
      pluginWaits.close();
      await threads.close();
      await housekeeping.stop();
    },
  };
}

function childStarter(
  store: WorkflowStore,
  starter: () => RunStarter,
  require: Definitions['require'],
): ChildStarter {
  return {
    async startChild({ parent, stepId, failures, workflowId, input }) {
      const current = await store.runs.find(null, parent.id);
      if (current && isFinal(current.status))
        throw new PlatformError('CONFLICT', `The run was ${current.status} before its child started.`);
      const run = await starter().start(
        {
          kind: 'workflow',
          workflow: require(workflowId),
          input,
          trigger: 'child',
          parent: {
            id: parent.id,
            // Same id for each try of an attempt: a crash before the parent records its child must not start a second
            // one.
            stepId: failures === 0 ? stepId : `${stepId}#${failures + 1}`,
            depth: parent.depth,
          },
        },
        { ...parent, parentSpanId: parent.spanId },
      );
      return run.id;
    },
  };
}
