import { createRegistry } from '../registry.ts';
import { relate } from './relations.ts';
import type { BrokenPlugin, LoadedPlugin, PluginRegistry } from './types.ts';

export interface Kept {
  /** The new plugins, with those that run on although what is on disk now is broken. */
  registry: PluginRegistry;
  /** These. */
  kept: readonly LoadedPlugin[];
}

/**
 * What runs after the plugins were read anew. A plugin that a fault would take away stays as it was, so that one
 * broken folder neither stops itself nor holds back the others. One goes whatever runs: if its files were tampered with,
 * or if nothing holds the code that it ran on (`canKeep`).
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
  // What runs has its place; what came since has to fit beside it.
  const related = relate([...lost, ...next.plugins], []);
  const registry = createRegistry(related.plugins, [...broken, ...related.broken], next.disabled);
  return { registry, kept: lost.filter(({ id, root }) => registry.find(id)?.root === root) };
}

/** A manifest that cannot be read tells no id, but its folder does. */
function runningFrom(running: PluginRegistry, { id, folder }: BrokenPlugin): LoadedPlugin | undefined {
  return id === undefined ? running.plugins.find(({ root }) => root === folder) : running.find(id);
}

function isTampered({ faults }: BrokenPlugin): boolean {
  return faults.some(({ code }) => code === 'INTEGRITY_MISMATCH');
}
