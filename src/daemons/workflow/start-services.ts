import type { ScheduleNode, WorkflowStore } from '../../store/ports/index.ts';
import type { Resources } from '../define-daemon.ts';
import type { PluginRuntime } from '../plugin-runtime/runtime.ts';
import { watchSources } from '../plugin-runtime/source-watch.ts';
import type { DefinitionServices } from './definition-services.ts';
import { EndHandlers } from './domain/ends/end-handlers.ts';
import type { Engine } from './domain/engine/ports.ts';
import { RunStarter } from './domain/starts/run-starter.ts';
import { Schedules } from './domain/starts/schedules.ts';
import { Triggers } from './domain/starts/triggers.ts';
import { registerAll } from './register-all.ts';
import { createRunMessages } from './run-messages.ts';
import { workflowFileStamps } from './workflow-files.ts';

export interface StartDeps extends DefinitionServices {
  store: WorkflowStore;
  node: ScheduleNode | undefined;
  plugins: PluginRuntime;
  engine: Engine;
}

/** Builds the services that start runs. Registers all definitions again when plugins or definition files change. */
export async function startServices(resources: Resources, deps: StartDeps, stack: AsyncDisposableStack) {
  const { config, clock, random, logger } = resources;
  const { store, node, plugins, engine, definitions, evaluator, checkCodeInput } = deps;
  const { requireScripts, sandboxCheck } = deps;
  const starter = new RunStarter({
    ...{ store: store.runs, engine, clock, random, evaluator, checkCodeInput, requireScripts },
    tenants: config.tenants,
  });
  const triggers = new Triggers({ definitions, starter, evaluator, logger });
  const endHandlers = new EndHandlers({
    ...{ tasks: store.endTasks, runs: store.runs, definitions, starter, evaluator, clock, random, logger },
    send: createRunMessages(resources),
  });
  stack.defer(() => endHandlers.stop());
  const schedules = new Schedules({
    ...{ store: store.schedules, runs: store.runs, starter, definitions, node },
    ...{ clock, random, logger },
  });
  const register = async (): Promise<void> =>
    schedules.sync(await registerAll(resources, plugins, { definitions, sandboxCheck }, logger));
  await register();
  const stopListening = plugins.onReload(async () => {
    try {
      await register();
    } catch (error) {
      logger.error('The workflows could not be registered again after plugins changed', { error });
    }
    await engine.pluginsChanged();
  });
  stack.adopt(
    await watchSources({
      stamp: () => workflowFileStamps(resources.projectDir, config.workflows),
      changed: register,
      logger,
    }),
    (opened) => opened.close(),
  );
  stack.defer(() => void stopListening());
  engine.onTick((now) => schedules.serve(now));
  return { starter, triggers, schedules, endHandlers };
}
