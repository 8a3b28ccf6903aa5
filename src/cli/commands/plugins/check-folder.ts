import { manifestFaults } from '../../../daemons/workflow/manifest-faults.ts';
import { type ValidatedPlugin, validatePlugin } from '../../../plugins/index.ts';
import type { CommandContext } from '../../context.ts';
import { withDescriber } from './local-describer.ts';

/** Everything that is wrong with a plugin's folder, its workflows and schedules included; needs no platform. */
export function checkFolder(folder: string, context: CommandContext): Promise<ValidatedPlugin> {
  return withDescriber(context, (describer) =>
    validatePlugin(folder, describer, (manifest) => manifestFaults(manifest)),
  );
}
