import { randomUUID } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir, readdir, realpath, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import {
  integrityOf,
  type LoadedPlugin,
  type PluginDescriber,
  pluginsFolder,
  type ValidateOptions,
  validatePlugin,
} from '../../../plugins/index.ts';
import { STAGING } from '../../plugin-runtime/shared/plugin-cache.ts';
import { fetchSource } from '../sources/fetch-source.ts';
import type { Source } from '../sources/parse-source.ts';
import { faulty } from './refusals.ts';

/** A fetched and validated plugin in a staging folder. */
export interface Staged {
  plugin: LoadedPlugin;
  /** The exact version that the source resolved to. */
  resolved: string;
}

export interface StageOptions extends ValidateOptions {
  /** Tenant whose secrets an MCP server gets while its tools are listed. */
  tenantId: string;
  /** Folder of the installed plugin, whose MCP server is kept. */
  keep?: string | undefined;
}

/**
 * Manages the folders of installed plugins. Each version of the files has its own folder, so that running code is never
 * overwritten.
 */
export interface PluginFolders {
  /** Loads the plugin in a folder. Throws if the plugin has faults. */
  requireSound(folder: string): Promise<LoadedPlugin>;
  /**
   * Fetches and validates a source and passes the staged plugin to `use`. Removes the staging folder when `use` has
   * ended.
   */
  withStaged<Result>(
    source: Source,
    options: StageOptions,
    use: (staged: Staged) => Promise<Result>,
  ): Promise<Result>;
  /** Moves a staged plugin to its final folder. */
  place(plugin: LoadedPlugin): Promise<{ folder: string; integrity: string }>;
  remove(folder: string): Promise<void>;
  /** Removes all plugin folders that are not in `kept`. */
  sweep(kept: ReadonlySet<string>): Promise<void>;
}

/** Creates the manager of plugin folders. Aborting `signal` cancels fetches. */
export function createPluginFolders(
  dataDir: string,
  describer: PluginDescriber,
  signal: AbortSignal,
  secrets: readonly string[],
): PluginFolders {
  const home = pluginsFolder(dataDir);

  async function requireSound(
    folder: string,
    options: ValidateOptions = {},
    finalRoot?: string,
  ): Promise<LoadedPlugin> {
    const real = await realpath(folder);
    const guarded = { dataDir, secrets, root: finalRoot ?? real };
    const { plugin, faults } = await validatePlugin(real, describer, { ...options, guarded });
    if (plugin && faults.length === 0) return plugin;
    throw faulty(plugin?.id, faults);
  }

  async function remove(folder: string): Promise<void> {
    await rm(join(home, folder), { recursive: true, force: true });
  }

  return {
    requireSound,
    async withStaged(source, { tenantId, keep, ...options }, use) {
      const name = `${STAGING}${randomUUID()}`;
      const workDir = join(home, name);
      const folder = join(workDir, 'plugin');
      await mkdir(workDir, { recursive: true, mode: 0o700 });
      try {
        const resolved = await fetchSource(
          source,
          folder,
          { cwd: workDir, signal },
          { keep, list: (plugin, permissions) => describer.mcpTools(plugin, permissions, tenantId) },
        );
        return await use({ plugin: await requireSound(folder, options, join(home, name)), resolved });
      } finally {
        await remove(name);
      }
    },
    async place({ id, version, root }) {
      const integrity = await integrityOf(root);
      const name = folderName(id, version, integrity);
      const there = await integrityOf(join(home, name)).catch(() => undefined);
      if (there === integrity) return { folder: name, integrity };
      // The existing folder might be in use, so it must not be overwritten.
      const folder = existsSync(join(home, name)) ? `${name}-${randomUUID().slice(0, 8)}` : name;
      await rename(root, join(home, folder));
      return { folder, integrity };
    },
    remove,
    async sweep(kept) {
      const found = await readdir(home).catch(() => []);
      for (const name of found) if (!kept.has(name)) await remove(name);
    },
  };
}

/** Returns the folder name of a plugin. The name includes the digest, so that running code is never overwritten. */
function folderName(id: string, version: string, integrity: string): string {
  const digest = Buffer.from(integrity.slice('sha512-'.length), 'base64').toString('hex').slice(0, 16);
  return `${id.replace('@', '').replace('/', '__')}-${version.replace(/[^\w.-]/g, '_')}-${digest}`;
}
