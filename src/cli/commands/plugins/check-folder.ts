import { type ValidatedPlugin, type ValidateOptions, validatePlugin } from '../../../plugins/index.ts';
import type { CommandContext } from '../../context.ts';
import { guardedBy, withDescriber } from './local-describer.ts';
import { PluginReferences } from './plugin-references.ts';

/**
 * Finds all problems of a plugin folder: in the manifest, workflows, schedules and references to other plugins. No
 * running platform is needed.
 */
export function checkFolder(
  folder: string,
  context: CommandContext,
  options: Pick<ValidateOptions, 'agree' | 'manifestNotRun'> = {},
): Promise<ValidatedPlugin> {
  const guarded = guardedBy(context, folder);
  return withDescriber(context, async (describer) => {
    const references = await PluginReferences.load(context, describer);
    const compile: ValidateOptions['compile'] = (manifest) => references.nameFaults(manifest);
    const { plugin, faults } = await validatePlugin(folder, describer, { ...options, guarded, compile });
    return plugin ? { plugin, faults: [...faults, ...references.relationFaults(plugin)] } : { faults };
  });
}
