import { type ValidatedPlugin, type ValidateOptions, validatePlugin } from '../../../plugins/index.ts';
import type { CommandContext } from '../../context.ts';
import { guardedBy, withDescriber } from './local-describer.ts';
import { PluginsBeside } from './plugins-beside.ts';

/**
 * Everything that is wrong with a plugin's folder: its workflows, schedules, and the names of other plugins, as far as these
 * are known here. Needs no platform that runs.
 */
export function checkFolder(
  folder: string,
  context: CommandContext,
  options: Pick<ValidateOptions, 'manifestNotRun'> = {},
): Promise<ValidatedPlugin> {
  const guarded = guardedBy(context, folder);
  return withDescriber(context, async (describer) => {
    const beside = await PluginsBeside.load(context, describer);
    const compile: ValidateOptions['compile'] = (manifest) => beside.nameFaults(manifest);
    const { plugin, faults } = await validatePlugin(folder, describer, { ...options, guarded, compile });
    return plugin ? { plugin, faults: [...faults, ...beside.relationFaults(plugin)] } : { faults };
  });
}
