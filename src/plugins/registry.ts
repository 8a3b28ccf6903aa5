import { PlatformError } from '../kit/errors.ts';
import { nearest } from '../kit/nearest.ts';
import { findFolders } from './registry/folders.ts';
import { checkHandlerFiles } from './registry/handler-files.ts';
import { readManifest } from './registry/manifest-file.ts';
import type { EvaluateManifest } from './registry/manifest-module.ts';
import { relate } from './registry/relations.ts';
import type { BrokenPlugin, LoadedPlugin, PluginRegistry } from './registry/types.ts';

export type { BrokenPlugin, LoadedPlugin, PluginFault, PluginRegistry } from './registry/types.ts';

export interface LoadPluginsOptions {
  /** The folder of `svc.config.json`; patterns are relative to it. */
  projectDir: string;
  /** The config's `plugins`: folders, or globs that match folders. */
  patterns: string[];
  /** Runs manifest modules in the sandbox; without it such plugins are told to be broken. */
  evaluate?: EvaluateManifest;
}

/**
 * Reads the manifests of all plugins. Broken ones are left out and told with every fault; the others load.
 * Nothing of a plugin runs in this process. @spec Platform codes; docs/plugins.md
 */
export async function loadPlugins({
  projectDir,
  patterns,
  evaluate,
}: LoadPluginsOptions): Promise<PluginRegistry> {
  const found = await findFolders(projectDir, patterns);
  const read = await Promise.all(found.folders.map((folder) => loadFolder(folder, evaluate)));
  const candidates = read.flatMap(({ plugin }) => plugin ?? []);
  const unreadable = [...found.broken, ...read.flatMap(({ broken }) => broken ?? [])];
  const related = relate(candidates, unreadable);
  return createRegistry(related.plugins, [...unreadable, ...related.broken]);
}

/** Reads one plugin's folder: its manifest, and whether the files it names are there. */
export async function loadFolder(
  root: string,
  evaluate?: EvaluateManifest,
): Promise<{ plugin?: LoadedPlugin; broken?: BrokenPlugin }> {
  const { manifest, id, faults } = await readManifest(root, evaluate);
  const all = manifest ? await checkHandlerFiles(root, manifest) : faults;
  if (!manifest || all.length > 0) return { broken: { folder: root, ...(id ? { id } : {}), faults: all } };
  return { plugin: { id: manifest.id, version: manifest.version, root, manifest } };
}

/** A registry of plugins that were checked already. */
export function createRegistry(
  plugins: readonly LoadedPlugin[],
  broken: readonly BrokenPlugin[],
): PluginRegistry {
  const byId = new Map(plugins.map((plugin) => [plugin.id, plugin]));

  function requirePlugin(id: string): LoadedPlugin {
    const plugin = byId.get(id);
    if (plugin) return plugin;
    throw notFound(id, byId.keys(), broken);
  }
  return {
    plugins,
    broken,
    find: (id) => byId.get(id),
    require: requirePlugin,
    requireWebhook(pluginId, event) {
      const plugin = requirePlugin(pluginId);
      const webhook = plugin.manifest.webhooks.find((declared) => declared.event === event);
      if (webhook) return { plugin, webhook };
      const meant = nearest(
        event,
        plugin.manifest.webhooks.map((declared) => declared.event),
      );
      throw new PlatformError(
        'WEBHOOK_NOT_FOUND',
        `The plugin ${pluginId} declares no webhook "${event}"${meant ? `; did you mean "${meant}"?` : '.'}`,
        { details: { pluginId, event } },
      );
    },
  };
}

function notFound(id: string, known: Iterable<string>, broken: readonly BrokenPlugin[]): PlatformError {
  const reasons = broken.find((plugin) => plugin.id === id)?.faults;
  if (reasons) {
    const [first] = reasons;
    const where = first?.path ? `${first.path}: ` : '';
    const more = reasons.length > 1 ? ` (and ${reasons.length - 1} more)` : '';
    return new PlatformError(
      'PLUGIN_NOT_FOUND',
      `The plugin ${id} is broken and was left out: ${where}${first?.message}${more}`,
      { details: { pluginId: id, faults: reasons } },
    );
  }
  const meant = nearest(id, known);
  return new PlatformError(
    'PLUGIN_NOT_FOUND',
    `There is no plugin "${id}"${meant ? `; did you mean "${meant}"?` : '; "svc plugins list" shows those there are.'}`,
    { details: { pluginId: id } },
  );
}
