import { relate } from './conflicts-and-dependencies.ts';
import { createRegistry } from './registry.ts';
import type { BrokenPlugin, LoadedPlugin, PluginRegistry } from './types.ts';

export interface Kept {
  /** The new registry, which includes the plugins of `kept`. */
  registry: PluginRegistry;
  /** Plugins that keep running although their files are broken. */
  kept: readonly LoadedPlugin[];
}

/**
 * Merges a reload into the running plugins: a running plugin that is broken on disk keeps running, and does
 * not block others. Exceptions: tampered files, or code that is no longer available (`canKeep`).
 */
export function keepRunning(
  running: PluginRegistry,
  next: PluginRegistry,
  canKeep: (plugin: LoadedPlugin) => boolean,
): Kept {
  const lost: LoadedPlugin[] = [];
  const broken = next.broken.map((one): BrokenPlugin => {
    const plugin = runningFrom(running, one);
    if (!plugin) return one;
    if (!next.find(plugin.id) && !isTampered(one) && canKeep(plugin)) lost.push(plugin);
    return { ...one, id: plugin.id };
  });
  if (lost.length === 0) return { registry: createRegistry(next.plugins, broken, next.disabled), kept: [] };
  // Running plugins take precedence in conflicts.
  const related = relate([...lost, ...next.plugins], []);
  const registry = createRegistry(related.plugins, [...broken, ...related.broken], next.disabled);
  return { registry, kept: lost.filter(({ id, root }) => registry.find(id)?.root === root) };
}

/**
 * Returns the running plugin of a broken one. An unreadable manifest has no id, so the plugin is found by its folder.
 */
function runningFrom(running: PluginRegistry, { id, folder }: BrokenPlugin): LoadedPlugin | undefined {
  return id === undefined ? running.plugins.find(({ root }) => root === folder) : running.find(id);
}

function isTampered({ faults }: BrokenPlugin): boolean {
  return faults.some(({ code }) => code === 'INTEGRITY_MISMATCH');
}
