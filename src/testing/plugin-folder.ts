import { readFile, realpath } from 'node:fs/promises';
import { resolve } from 'node:path';
import { PlatformError } from '../kit/errors/errors.ts';
import type { LoadedPlugin, PluginRegistry } from '../plugins/index.ts';

export interface PluginFolder {
  folder: string;
  /**
   * Id from the manifest or package file. Undefined if the manifest is a module, because reading its id would require
   * running the module.
   */
  id: string | undefined;
}

export async function pluginFolder(path: string): Promise<PluginFolder> {
  const folder = await realFolder(path);
  return { folder, id: await idOf(folder) };
}

/** Returns the plugin if it was loaded. Otherwise, throws the first problem of the plugins that failed to load. */
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

/**
 * Resolves symbolic links, as the plugin registry does. Returns a missing folder unchanged, so that loading the plugin
 * reports the error.
 */
async function realFolder(path: string): Promise<string> {
  const folder = resolve(path);
  return realpath(folder).catch(() => folder);
}

async function idOf(folder: string): Promise<string | undefined> {
  for (const file of ['svc.plugin.json', 'package.json']) {
    try {
      const { id, name } = JSON.parse(await readFile(`${folder}/${file}`, 'utf8')) as Record<string, unknown>;
      const found = file === 'package.json' ? name : id;
      if (typeof found === 'string') return found;
    } catch {
      // The file is missing or invalid, so the next file is tried.
    }
  }
  return undefined;
}
