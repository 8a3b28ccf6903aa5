import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { z } from 'zod';
import { PlatformError } from '../../../kit/errors/errors.ts';
import { kernelSandboxFaults, type PluginFault, sandboxInForce } from '../../../plugins/index.ts';
import { defineCommand, ok } from '../../define-command.ts';
import { checkFolder } from './check-folder.ts';
import { locateFaults, placeText } from './faults/located-fault.ts';
import { runManifestFlag } from './install-plan.ts';

interface Validation {
  folder: string;
  id: string;
  version: string;
}

/**
 * Defines `svc plugins validate`, which loads the plugin in a local sandbox and needs no running platform. @spec
 * docs/plugins.md "Developing"
 */
export const validate = defineCommand({
  name: 'plugins validate',
  summary: "Check a plugin's manifest, files and handlers, and list all problems",
  example: 'svc plugins validate ./plugins/orders',
  args: z.object({
    folder: z.string().default('.').describe('plugin folder; default: current folder'),
    runManifest: runManifestFlag,
  }),
  positionals: ['folder'],
  async run({ folder, runManifest }, context) {
    const path = resolve(context.cwd, folder);
    if (!existsSync(path))
      throw invalid(
        path,
        [{ code: 'INVALID_MANIFEST', path: '', message: 'the folder does not exist' }],
        context.cwd,
      );
    const { execution } = context.platform().config;
    const { mode, reason } = await sandboxInForce(execution.worker.sandbox);
    const weakness = mode === 'bwrap' ? undefined : (reason ?? mode);
    const { plugin, faults } = await checkFolder(path, context, {
      manifestNotRun: runManifest ? undefined : weakness,
      agree(manifest) {
        const missing = weakness === undefined ? [] : kernelSandboxFaults(manifest, execution, weakness);
        if (missing.length > 0) throw invalid(path, missing, context.cwd);
      },
    });
    if (!plugin || faults.length > 0) throw invalid(path, faults, context.cwd);
    return ok({ folder: path, id: plugin.id, version: plugin.version });
  },
  text: ({ id, version }: Validation, style) => `${style.green('valid')} ${id} ${version}`,
});

/** Returns an error that lists the problems, each with its position, its path in the manifest and a remedy. */
function invalid(folder: string, faults: readonly PluginFault[], cwd: string): PlatformError {
  const located = locateFaults(folder, faults);
  const lines = located.flatMap((fault) => [
    `  ${placeText(fault, cwd)} ${fault.path === '' ? '(manifest)' : fault.path}: ${fault.message}`,
    `    fix: ${fault.remedy}`,
  ]);
  const count = faults.length === 1 ? 'One problem' : `${faults.length} problems`;
  return new PlatformError(
    faults[0]?.code ?? 'INVALID_MANIFEST',
    `${count} in ${folder}:\n${lines.join('\n')}`,
    { details: { folder, faults: located } },
  );
}
