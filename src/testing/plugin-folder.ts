import { readFile, realpath } from 'node:fs/promises';
import { resolve } from 'node:path';
import { PlatformError } from '../kit/errors/errors.ts';
import type { LoadedPlugin, PluginRegistry } from '../plugins/index.ts';

/** Folder of the plugin under test, and its id as read from its files. */
export interface PluginFolder {
  folder: string;
  /** Undefined if the manifest is a module, which must be executed to get the id. */
  id: string | undefined;
}

export async function pluginFolder(path: string): Promise<PluginFolder> {
  const folder = await realFolder(path);
  return { folder, id: await idOf(folder) };
}

/** Finds the plugin among the loaded ones. Throws the first fault of a broken plugin. */
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

/** Resolves links as the registry does. A missing folder is returned as is; loading it reports the error. */
async function realFolder(path: string): Promise<string> {
  const folder = resolve(path);
  return realpath(folder).catch(() => folder);
}

/** Reads the id from the manifest or package file. */
async function idOf(folder: string): Promise<string | undefined> {
  for (const file of ['svc.plugin.json', 'package.json']) {
    try {
      const { id, name } = JSON.parse(await readFile(`${folder}/${file}`, 'utf8')) as Record<string, unknown>;
      const found = file === 'package.json' ? name : id;
      if (typeof found === 'string') return found;
    } catch {
      // A missing or invalid file is skipped.
    }
  }
  return undefined;
}
