import { nearest } from '../../../../kit/data/nearest.ts';
import type { CompiledWorkflow } from './compiled-workflow.ts';
import { endHandlersOf } from './end-handler-paths.ts';
import type { DefinitionIssue } from './templates.ts';

/** Ids of the commands, jobs and webhooks that a plugin declares. */
export interface KnownPlugin {
  commands: ReadonlySet<string>;
  jobs: ReadonlySet<string>;
  webhooks: ReadonlySet<string>;
}

/**
 * Returns the ids that a plugin declares. Returns undefined if the plugin is not loaded. Returns `anything` if the
 * loaded plugins cannot be determined.
 */
export type FindPlugin = (id: string) => KnownPlugin | 'anything' | undefined;

/** Returns the faults of steps and triggers that refer to an unknown plugin, command, job or webhook. */
export function unresolved(
  { jobs, triggers }: Pick<CompiledWorkflow, 'jobs' | 'triggers'>,
  find: FindPlugin,
): DefinitionIssue[] {
  const steps = jobs.flatMap((job) =>
    job.steps.flatMap(({ uses, kind, index }): DefinitionIssue[] => {
      if (kind.name !== 'plugin') return [];
      const message = usesFault(uses, find);
      return message === null ? [] : [{ path: ['jobs', job.id, 'steps', index, 'uses'], message }];
    }),
  );
  const webhooks = triggers.flatMap(({ pluginId, event }, index): DefinitionIssue[] => {
    const message = webhookFault(pluginId, event, find);
    return message === null ? [] : [{ path: ['on', 'webhook', index], message }];
  });
  return [...steps, ...webhooks];
}

/** Returns the faults of handlers of ended runs that start an unknown workflow. */
export function unknownHandlers(
  { definition }: Pick<CompiledWorkflow, 'definition'>,
  known: readonly string[],
): DefinitionIssue[] {
  return endHandlersOf(definition.on).flatMap(({ handler: { workflow }, path }): DefinitionIssue[] => {
    if (workflow === undefined || known.includes(workflow)) return [];
    const near = nearest(workflow, known);
    const message = `there is no workflow "${workflow}"${near ? `; did you mean "${near}"?` : ''}`;
    return [{ path: [...path, 'workflow'], message }];
  });
}

function usesFault(uses: string, find: FindPlugin): string | null {
  const isJob = uses.startsWith('job:');
  const name = isJob ? uses.slice('job:'.length) : uses;
  const at = name.lastIndexOf('/');
  const [pluginId, own] = [name.slice(0, at), name.slice(at + 1)];
  const plugin = find(pluginId);
  if (plugin === 'anything') return null;
  if (!plugin) return `there is no plugin "${pluginId}" that runs`;
  const has = isJob ? plugin.jobs : plugin.commands;
  if (has.has(own)) return null;
  return `the plugin ${pluginId} has no ${isJob ? 'job' : 'command'} "${own}"${listed(has)}`;
}

function webhookFault(pluginId: string, event: string, find: FindPlugin): string | null {
  const plugin = find(pluginId);
  if (plugin === 'anything' || plugin?.webhooks.has(event)) return null;
  if (!plugin) return `there is no plugin "${pluginId}" that runs`;
  return `the plugin ${pluginId} declares no webhook "${event}"${listed(plugin.webhooks)}`;
}

function listed(names: ReadonlySet<string>): string {
  return names.size === 0 ? '' : `; there is ${[...names].slice(0, 20).join(', ')}`;
}
