import type { TemplateParts } from '../../plugins/templates/template.ts';
import type { ImportedHook } from './imported-hook.ts';
import { HOOKS_JS } from './plugin-code.ts';

/** Returns the manifest and files of a plugin with imported hooks. The secrets of the hooks are not among them. */
export function pluginParts(hooks: readonly ImportedHook[]): TemplateParts {
  const settings = Object.fromEntries(hooks.map(({ id, settings }) => [id, settings]));
  const read = unique(hooks.flatMap(({ reads }) => reads));
  const write = unique(hooks.flatMap(({ writes }) => writes));
  return {
    readme:
      'Runs the commands of imported hooks, inside bubblewrap or a container only. `hooks.json` has their commands, ' +
      'arguments and conditions. Commands see the files that `permissions.fs` of the manifest lists, and no network ' +
      'unless `permissions.network` is `["*"]`.',
    manifest: {
      permissions: {
        fs: { read, write },
        platform: { childProcess: 'sandboxed', state: false, cache: false },
      },
      webhooks: hooks.map(({ declaration }) => declaration),
    },
    files: { 'hooks.js': HOOKS_JS, 'hooks.json': `${JSON.stringify(settings, null, 2)}\n` },
  };
}

function unique(paths: readonly string[]): string[] {
  return [...new Set(paths)].toSorted();
}
