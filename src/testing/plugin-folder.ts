import { readFile, realpath } from 'node:fs/promises';
import { resolve } from 'node:path';
import { PlatformError } from '../kit/errors.ts';
import type { LoadedPlugin, PluginRegistry } from '../plugins/index.ts';

/** Where the plugin under test lies, and the id that its files tell before it is loaded. */
export interface PluginFolder {
  folder: string;
  /** Undefined where the manifest is a module, which has to be run for it. */
  id: string | undefined;
}

export async function pluginFolder(path: string): Promise<PluginFolder> {
  const folder = await realFolder(path);
  return { folder, id: await idOf(folder) };
}

/** Finds the plugin among those that were loaded. Throws with the first fault's code where it is broken. */
export function requireLoaded({ folder, id }: PluginFolder, registry: PluginRegistry): LoadedPlugin {
  const plugin = registry.plugins.find(({ root }) => root === folder);
  const found = plugin ?? (id === undefined ? undefined : registry.find(id));
  if (found) return found;
  const faults = registry.broken.flatMap((broken) => broken.faults);
  throw new PlatformError(
    faults[0]?.code ?? 'INVALID_MANIFEST',
    `The plugin in ${folder} cannot be loaded: ${faults.map(({ path, message }) => `${path || 'manifest'}: ${message}`).join('; ')}`,
    { details: { faults } },
  );
}

/** As the registry names it; a folder that is not there is told by loading it. */
async function realFolder(path: string): Promise<string> {
  const folder = resolve(path);
  return realpath(folder).catch(() => folder);
}

/** The id as the manifest file tells it; a manifest module has to be run for that. */
async function idOf(folder: string): Promise<string | undefined> {
  for (const file of ['svc.plugin.json', 'package.json']) {
    try {
      const { id, name } = JSON.parse(await readFile(`${folder}/${file}`, 'utf8')) as Record<string, unknown>;
      const found = file === 'package.json' ? name : id;
      if (typeof found === 'string') return found;
    } catch {
      // The other file may tell.
    }
  }
  return undefined;
}
