import { createRegistry } from '../registry.ts';
import { relate } from './relations.ts';
import type { BrokenPlugin, LoadedPlugin, PluginRegistry } from './types.ts';

export interface Kept {
  /** The new plugins, with those that run on although what is on disk now is broken. */
  registry: PluginRegistry;
  /** Of these, what is wrong with them on disk. */
  kept: readonly BrokenPlugin[];
}

/**
 * What runs after the plugins were read anew. A plugin that a fault would take away stays as it was, so that one
 * broken folder neither stops itself nor holds back the others; one whose files were tampered with goes whatever runs.
 */
export function keepRunning(running: PluginRegistry, next: PluginRegistry): Kept {
  const lost = next.broken.flatMap((broken): Array<{ plugin: LoadedPlugin; broken: BrokenPlugin }> => {
    const plugin = runningFrom(running, broken);
    if (!plugin || next.find(plugin.id) || isTampered(broken)) return [];
    return [{ plugin, broken: { ...broken, id: plugin.id } }];
  });
  if (lost.length === 0) return { registry: next, kept: [] };
  // What runs has its place; what came since has to fit beside it.
  const related = relate([...lost.map(({ plugin }) => plugin), ...next.plugins], []);
  const ids = new Set(related.plugins.map(({ id }) => id));
  const kept = lost.map(({ broken }) => broken).filter(({ id }) => ids.has(id!));
  return {
    registry: createRegistry(related.plugins, [...next.broken, ...related.broken], next.disabled),
    kept,
  };
}

/** A manifest that cannot be read tells no id, but its folder does. */
function runningFrom(running: PluginRegistry, { id, folder }: BrokenPlugin): LoadedPlugin | undefined {
  return id === undefined ? running.plugins.find(({ root }) => root === folder) : running.find(id);
}

function isTampered({ faults }: BrokenPlugin): boolean {
  return faults.some(({ code }) => code === 'INTEGRITY_MISMATCH');
}
