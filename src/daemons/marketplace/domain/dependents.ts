import type { LockFile, PluginOrigin } from '../../../contracts/index.ts';
import { PlatformError } from '../../../kit/errors/errors.ts';
import { type LoadedPlugin, type PluginRegistry, relate } from '../../../plugins/index.ts';
import { entryOf } from './lock-entries.ts';
import { alreadyExists, faulty, unknown } from './refusals.ts';

/** Checks a change against the other plugins, which `load` reads from disk. */
export interface Dependents {
  /** Throws if the plugin conflicts with other plugins or lacks dependencies. */
  requirePlace(plugin: LoadedPlugin): Promise<void>;
  /** Throws PLUGIN_CONFLICT if a plugin with this id exists. */
  requireAbsent(id: string, lock: LockFile): Promise<void>;
  /** Throws CONFLICT if other plugins depend on this plugin. The error lists the dependent plugins. */
  requireUnneeded(id: string, what: string): Promise<void>;
  /** Throws PLUGIN_NOT_FOUND for an unknown plugin, and CONFLICT if the plugin's origin is not `wanted`. */
  requireOrigin(id: string, wanted: PluginOrigin, lock: LockFile): Promise<void>;
}

export function createDependents(load: () => Promise<PluginRegistry>): Dependents {
  return {
    async requirePlace(plugin) {
      const registry = await load();
      const others = registry.plugins.filter(({ id }) => id !== plugin.id);
      const { broken } = relate([...others, plugin], [...registry.broken]);
      const own = broken.find(({ id, folder }) => id === plugin.id && folder === plugin.root);
      if (own) throw faulty(plugin.id, own.faults);
      const lost = broken.find(({ id }) => others.some((other) => other.id === id));
      if (lost) throw faulty(lost.id, lost.faults);
    },
    async requireAbsent(id, lock) {
      const entry = entryOf(lock, id);
      const there = entry ?? (await load()).find(id);
      if (there) throw alreadyExists(id, there.version, entry);
    },
    async requireUnneeded(id, what) {
      const registry = await load();
      const dependents = registry.plugins.filter(({ manifest }) => Object.hasOwn(manifest.dependencies, id));
      if (dependents.length === 0) return;
      const names = dependents.map((plugin) => plugin.id);
      throw new PlatformError(
        'CONFLICT',
        `${id} cannot be ${what}: ${names.join(', ')} ${names.length > 1 ? 'need' : 'needs'} it.`,
        { details: { dependents: names } },
      );
    },
    async requireOrigin(id, wanted, lock) {
      const entry = entryOf(lock, id);
      if (entry?.origin === wanted) return;
      const registry = await load();
      const isProject =
        registry.find(id) !== undefined || registry.disabled.some((plugin) => plugin.id === id);
      if (!entry && !isProject) throw unknown(id);
      const origin = entry?.origin ?? 'project';
      throw new PlatformError(
        'CONFLICT',
        `${id} has the origin ${origin}, not ${wanted}: ${hintFor(origin, id)}.`,
        {
          details: { pluginId: id, origin },
        },
      );
    },
  };
}

function hintFor(origin: PluginOrigin, id: string): string {
  const hints: Record<PluginOrigin, string> = {
    installed: `remove it with \`svc plugins uninstall ${id}\``,
    linked: `unlink it with \`svc plugins unlink ${id}\``,
    project: 'it belongs to the project: remove its folder, or disable it',
  };
  return hints[origin];
}
