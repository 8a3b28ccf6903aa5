import type { WorkflowStore } from '../../store/ports/index.ts';
import type { Resources } from '../define-daemon.ts';
import type { PluginRuntime } from '../plugin-runtime/runtime.ts';
import { watchSources } from '../plugin-runtime/source-watch.ts';
import type { DefinitionServices } from './definition-services.ts';
import type { Engine } from './domain/engine/ports.ts';
import { createRunStarter } from './domain/starts/run-starter.ts';
import { createSchedules } from './domain/starts/schedules.ts';
import { createTriggers } from './domain/starts/triggers.ts';
import { registerAll } from './register-all.ts';
import { workflowFileStamps } from './workflow-files.ts';

export interface StartDeps extends DefinitionServices {
  store: WorkflowStore;
  plugins: PluginRuntime;
  engine: Engine;
}

/** Builds what starts runs, and registers all definitions again when their sources change. */
export async function startServices(
  resources: Resources,
  { store, plugins, engine, definitions, evaluator, checkCodeInput, children }: StartDeps,
  stack: AsyncDisposableStack,
) {
  const { config, clock, random, logger } = resources;
  const starter = createRunStarter({
    ...{ store: store.runs, engine, clock, random, evaluator, checkCodeInput },
    tenants: config.tenants,
  });
  children.subscribe(starter, definitions);
  const triggers = createTriggers({ definitions, starter, evaluator, logger });
  const schedules = createSchedules({
    ...{ store: store.schedules, runs: store.runs, starter, definitions },
    ...{ clock, random, logger },
  });
  const register = async (): Promise<void> =>
    schedules.sync(await registerAll(resources, plugins, definitions, logger));
  await register();
  const stopListening = plugins.onReload(async () => {
    try {
      await register();
    } catch (error) {
      logger.error('The workflows could not be registered anew after plugins changed', { error });
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
  engine.onTick(schedules.serve);
  return { starter, triggers, schedules };
}
