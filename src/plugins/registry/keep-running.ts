import { relate } from './conflicts-and-dependencies.ts';
import { createRegistry } from './registry.ts';
import type { BrokenPlugin, LoadedPlugin, PluginRegistry } from './types.ts';

export interface Kept {
  /** The new registry. It includes the plugins of `kept`. */
  registry: PluginRegistry;
  /** Plugins that keep running although their files are broken. */
  kept: readonly LoadedPlugin[];
}

/**
 * Returns the registry after a reload. A running plugin whose files are now broken keeps running, unless its installed
 * files were tampered with, or `canKeep` reports that its loaded code is no longer available.
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
  // Plugins that keep running come first, so that they win conflicts with newly loaded ones.
  const related = relate([...lost, ...next.plugins], []);
  const registry = createRegistry(related.plugins, [...broken, ...related.broken], next.disabled);
  return { registry, kept: lost.filter(({ id, root }) => registry.find(id)?.root === root) };
}

/** Returns the running version of a broken plugin. If the manifest cannot be read, the folder identifies the plugin. */
function runningVersion(running: PluginRegistry, { id, folder }: BrokenPlugin): LoadedPlugin | undefined {
  return id === undefined ? running.plugins.find(({ root }) => root === folder) : running.find(id);
}

function isTampered({ faults }: BrokenPlugin): boolean {
  return faults.some(({ code }) => code === 'INTEGRITY_MISMATCH');
}
