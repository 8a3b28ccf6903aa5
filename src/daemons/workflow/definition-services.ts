import { systemClock } from '../../kit/time/clock.ts';
import type { WorkflowStore } from '../../store/ports/index.ts';
import type { Resources } from '../define-daemon.ts';
import type { PluginRuntime } from '../plugin-runtime/runtime.ts';
import { codeInputCheck } from './code-input.ts';
import { Definitions } from './domain/definition/definitions.ts';
import { createEvaluator } from './domain/definition/evaluator.ts';
import type { Handlers } from './domain/steps/kinds/handlers.ts';
import { EvaluationThreads } from './evaluation/threads.ts';
import { guardedHttp } from './guarded-http.ts';
import { knownPlugin } from './manifest-faults.ts';
import type { ScriptServices } from './script-services.ts';
import { stepKinds } from './step-kinds.ts';

export interface DefinitionDeps {
  store: WorkflowStore;
  plugins: PluginRuntime;
  handlers: Handlers;
  scripts: ScriptServices;
}

/** Builds the services that compile definitions and evaluate their expressions. */
export function definitionServices(
  { config, clock, logger }: Resources,
  { store, plugins, handlers, scripts }: DefinitionDeps,
  stack: AsyncDisposableStack,
) {
  const definitions = new Definitions({
    kindOf: stepKinds({
      http: guardedHttp(config.workflow.httpAllow, clock),
      handlers,
      runScript: scripts.runScript,
      now: clock.now,
    }),
    find: store.definition,
    findPlugin(id) {
      const plugin = plugins.registry.find(id);
      return plugin && knownPlugin(plugin.manifest);
    },
  });
  const threads = stack.adopt(new EvaluationThreads(systemClock), (opened) => opened.close());
  return {
    definitions,
    evaluator: createEvaluator(threads),
    sandboxCheck: scripts.sandboxCheck,
    requireScripts: () => scripts.sandboxCheck.require(),
    checkCodeInput: codeInputCheck(plugins, logger),
  };
}

export type DefinitionServices = ReturnType<typeof definitionServices>;
