import { existsSync } from 'node:fs';
import { realpath } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { glob, isDynamicPattern } from 'tinyglobby';
import { MANIFEST_FILE } from '../../contracts/index.ts';
import { NO_MANIFEST } from './manifest-file.ts';
import { manifestModuleOf } from './manifest-module.ts';
import type { BrokenPlugin, PluginFault } from './types.ts';

export interface FoundFolders {
  /** Real paths of the folders with a manifest. The order follows the patterns, then the folder names. */
  folders: string[];
  broken: BrokenPlugin[];
}

/**
 * Finds the plugin folders that match the `plugins` patterns of the config. A folder without a manifest is ignored if
 * only a wildcard matches the folder. Otherwise, the folder is reported as broken.
 */
export async function findFolders(projectDir: string, patterns: string[]): Promise<FoundFolders> {
  const folders = new Set<string>();
  const broken: BrokenPlugin[] = [];
  for (const pattern of patterns) {
    const isNamed = !isDynamicPattern(pattern);
    for (const match of await matchFolders(projectDir, pattern, isNamed)) {
      if (await hasManifest(match)) folders.add(await realpath(match));
      else {
        const fault = await withoutManifest(match, isNamed);
        if (fault) broken.push({ folder: match, faults: [fault] });
      }
    }
  }
  return { folders: [...folders], broken };
}

async function hasManifest(folder: string): Promise<boolean> {
  return existsSync(join(folder, MANIFEST_FILE)) || (await manifestModuleOf(folder)) !== undefined;
}

async function matchFolders(projectDir: string, pattern: string, isNamed: boolean): Promise<string[]> {
  if (isNamed) return [resolve(projectDir, pattern)];
  const matches = await glob(pattern, {
    cwd: projectDir,
    absolute: true,
    onlyDirectories: true,
    expandDirectories: false,
  });
  return matches.map((match) => resolve(match)).sort();
}

async function withoutManifest(folder: string, isNamed: boolean): Promise<PluginFault | undefined> {
  const fault = (message: string): PluginFault => ({ code: 'INVALID_MANIFEST', path: '', message });
  if (!isNamed) return undefined;
  if (!existsSync(folder)) return fault('The folder does not exist; check "plugins" in svc.config.json.');
  return fault(NO_MANIFEST);
}
