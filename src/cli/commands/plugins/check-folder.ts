import { manifestFaults } from '../../../daemons/workflow/manifest-faults.ts';
import { type ValidatedPlugin, type ValidateOptions, validatePlugin } from '../../../plugins/index.ts';
import type { CommandContext } from '../../context.ts';
import { guardedBy, withDescriber } from './local-describer.ts';

/** Everything that is wrong with a plugin's folder, its workflows and schedules included; needs no platform. */
export function checkFolder(
  folder: string,
  context: CommandContext,
  options: Pick<ValidateOptions, 'manifestNotRun'> = {},
): Promise<ValidatedPlugin> {
  const guarded = guardedBy(context, folder);
  return withDescriber(context, (describer) =>
    validatePlugin(folder, describer, { ...options, guarded, compile: manifestFaults }),
  );
}
