import { relate } from './conflicts-and-dependencies.ts';
import { createRegistry } from './registry.ts';
import type { BrokenPlugin, LoadedPlugin, PluginRegistry } from './types.ts';

export interface Kept {
  /** The new registry, including the plugins in `kept`. */
  registry: PluginRegistry;
  /** Plugins that keep running although their files are broken. */
  kept: readonly LoadedPlugin[];
}

/**
 * Returns the registry after a reload. A plugin with broken files keeps running if `canKeep` returns true. A plugin
 * with tampered files is excluded.
 */
export function keepRunning(
  running: PluginRegistry,
  next: PluginRegistry,
  canKeep: (plugin: LoadedPlugin) => boolean,
): Kept {
  const lost: LoadedPlugin[] = [];
  const broken = next.broken.map((one): BrokenPlugin => {
    const plugin = runningVersion(running, one);
    if (!plugin) return one;
    if (!next.find(plugin.id) && !isTampered(one) && canKeep(plugin)) lost.push(plugin);
    return { ...one, id: plugin.id };
  });
  if (lost.length === 0) return { registry: createRegistry(next.plugins, broken, next.disabled), kept: [] };
  // In a conflict, the first plugin takes precedence. Running plugins with broken files are therefore listed before new
  // plugins.
  const related = relate([...lost, ...next.plugins], []);
  const registry = createRegistry(related.plugins, [...broken, ...related.broken], next.disabled);
  return { registry, kept: lost.filter(({ id, root }) => registry.find(id)?.root === root) };
}

/**
 * Returns the running version of a broken plugin. Finds this version by folder if the plugin's manifest cannot be read.
 */
function runningVersion(running: PluginRegistry, { id, folder }: BrokenPlugin): LoadedPlugin | undefined {
  return id === undefined ? running.plugins.find(({ root }) => root === folder) : running.find(id);
}

function isTampered({ faults }: BrokenPlugin): boolean {
  return faults.some(({ code }) => code === 'INTEGRITY_MISMATCH');
}
