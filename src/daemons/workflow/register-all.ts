import { PluginSchedule } from '../../contracts/index.ts';
import { messageOf } from '../../kit/errors/errors.ts';
import type { Logger } from '../../kit/telemetry/logger.ts';
import type { LoadedPlugin } from '../../plugins/index.ts';
import type { Resources } from '../define-daemon.ts';
import type { PluginRuntime } from '../plugin-runtime/runtime.ts';
import { scheduleIds } from './domain/cron/schedule-ids.ts';
import { scheduleFault } from './domain/cron/schedule-times.ts';
import type { Definitions } from './domain/definition/definitions.ts';
import { pluginHandlerFault } from './domain/definition/end-handler-faults.ts';
import { hasScripts, scriptIssues } from './domain/definition/scripts.ts';
import { formatPath } from './domain/definition/templates.ts';
import type { PluginSchedules } from './domain/starts/schedules.ts';
import type { SandboxCheck } from './sandbox-check.ts';
import { type ScheduleLimit, scheduleLimit } from './schedule-limit.ts';
import { readWorkflowFiles } from './workflow-files.ts';

/** Registers the definitions of config files and plugins. Faulty definitions are reported and skipped. */
export async function registerAll(
  { config, projectDir }: Resources,
  plugins: PluginRuntime,
  { definitions, sandboxCheck }: { definitions: Definitions; sandboxCheck: SandboxCheck },
  logger: Logger,
): Promise<PluginSchedules> {
  const files = await readWorkflowFiles(projectDir, config.workflows);
  const limited = plugins.registry.plugins.map((plugin) => ({
    plugin,
    limit: scheduleLimit(plugin.manifest),
  }));
  const ofPlugins = limited.flatMap(({ plugin: { id, manifest }, limit }) =>
    manifest.workflows
      .filter((_, index) => !limit.refusedWorkflows.has(index))
      .map((definition) => ({
        ...{ source: id, definition, pluginId: id },
        handlerFault: pluginHandlerFault(manifest),
      })),
  );
  definitions.register([...files.found, ...ofPlugins], files.faults);
  await addScriptFaults(definitions, sandboxCheck);
  const planned = pluginSchedules(limited, definitions);
  for (const { source, path, message, unresolved } of definitions.faults) {
    logger.diagnostic({
      domain: 'workflow',
      event: unresolved ? 'workflow.unresolved' : 'workflow.refused',
      level: unresolved ? 'warn' : 'error',
      reasonCode: 'VALIDATION_ERROR',
      message: `${source}: ${path === '' ? '' : `${path}: `}${message}`,
      outcome: unresolved ? 'degraded' : 'refused',
      evidence: { source, path },
    });
  }
  return planned;
}

/** Reports scripts that cannot run here. Their workflows stay registered, because another node can run them. */
async function addScriptFaults(definitions: Definitions, sandboxCheck: SandboxCheck): Promise<void> {
  sandboxCheck.reset();
  const found = [...definitions.registered.values()].filter(({ workflow }) => hasScripts(workflow));
  if (found.length === 0) return;
  try {
    await sandboxCheck.require();
  } catch (error) {
    for (const { workflow, source } of found)
      for (const { path, message } of scriptIssues(workflow, messageOf(error)))
        definitions.fault({ source, path: formatPath(path), message, unresolved: true });
  }
}

/** Returns the schedules of plugin manifests. Faulty schedules are reported and skipped. */
function pluginSchedules(
  plugins: ReadonlyArray<{ plugin: LoadedPlugin; limit: ScheduleLimit }>,
  definitions: Definitions,
): PluginSchedules {
  const loaded = new Map<string, boolean>();
  const found = plugins.flatMap(({ plugin: { id, manifest }, limit }) => {
    for (const fault of limit.faults) definitions.fault({ source: id, ...fault });
    const plans = manifest.schedules
      .slice(0, limit.schedules)
      .flatMap((written, index) => planOf(written, index, id, definitions));
    loaded.set(id, plans.length === manifest.schedules.length);
    const ids = scheduleIds(id, plans);
    return plans.map((plan, place) => ({ id: ids[place]!, plan }));
  });
  return { found, loaded };
}

function planOf(written: unknown, index: number, source: string, definitions: Definitions): PluginSchedule[] {
  const told = (message: string, key?: string): PluginSchedule[] => {
    const path = `schedules[${index}]${key === undefined || key === '' ? '' : `.${key}`}`;
    definitions.fault({ source, path, message });
    return [];
  };
  const parsed = PluginSchedule.safeParse(written);
  if (!parsed.success) {
    const [issue] = parsed.error.issues;
    return told(issue!.message, issue!.path.join('.'));
  }
  const plan = parsed.data;
  const fault = scheduleFault(plan);
  if (fault) return told(fault.message, fault.key);
  if (!definitions.registered.has(plan.workflow))
    return told(`there is no workflow "${plan.workflow}"`, 'workflow');
  return [plan];
}
