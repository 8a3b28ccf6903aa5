import { isDeepStrictEqual } from 'node:util';
import semver from 'semver';
import { type EventDecl, eventSchemaRef } from '../../contracts/index.ts';
import { limitFaults } from './manifest-file.ts';
import { mcpOfferConflicts } from './mcp-offers.ts';
import { toolConflicts } from './tool-names.ts';
import type { BrokenPlugin, LoadedPlugin, PluginFault } from './types.ts';

export interface Related {
  /** The plugins that can run, sorted so that each plugin follows its dependencies. */
  plugins: LoadedPlugin[];
  broken: BrokenPlugin[];
}

/** Excludes plugins with conflicts or unmet dependencies. Keeps the first of two conflicting plugins. */
export function relate(candidates: LoadedPlugin[], knownBroken: BrokenPlugin[]): Related {
  const conflicts = dropConflicts(candidates);
  const broken = [...knownBroken, ...conflicts.broken];
  const dependencies = dropUnmet(conflicts.plugins, broken);
  return { plugins: dependencies.plugins, broken: [...conflicts.broken, ...dependencies.broken] };
}

function leaveOut({ id, root }: LoadedPlugin, faults: PluginFault[]): BrokenPlugin {
  return { folder: root, id, faults: limitFaults(faults) };
}

function dropConflicts(candidates: LoadedPlugin[]): Related {
  const kept = new Map<string, LoadedPlugin>();
  const broken: BrokenPlugin[] = [];
  for (const plugin of candidates) {
    const faults = conflictsOf(plugin, kept);
    if (faults.length > 0) broken.push(leaveOut(plugin, faults));
    else kept.set(plugin.id, plugin);
  }
  return { plugins: [...kept.values()], broken };
}

function conflictsOf(plugin: LoadedPlugin, kept: Map<string, LoadedPlugin>): PluginFault[] {
  const conflict = (path: string, message: string): PluginFault => ({
    code: 'PLUGIN_CONFLICT',
    path,
    message,
  });
  const twin = kept.get(plugin.id);
  if (twin) return [conflict('id', `The plugin ${plugin.id} is already loaded from ${twin.root}.`)];
  const named = [
    ...eventConflicts(plugin, kept),
    ...toolConflicts(plugin, kept.values()),
    ...mcpOfferConflicts(plugin, kept.values()),
  ];
  const faults = named.map(({ path, message }) => conflict(path, message));
  for (const other of kept.values()) {
    const taken = new Set(other.manifest.commands.map(({ id }) => id));
    for (const [index, { id }] of plugin.manifest.commands.entries()) {
      if (!taken.has(id)) continue;
      faults.push(
        conflict(`commands[${index}].id`, `The command "${id}" already belongs to the plugin ${other.id}.`),
      );
    }
  }
  return faults;
}

/** Returns the event types that another plugin declares with another schema. */
function eventConflicts(
  { manifest }: LoadedPlugin,
  kept: Map<string, LoadedPlugin>,
): Array<{ path: string; message: string }> {
  return Object.entries(manifest.events).flatMap(([type, event]) => {
    const other = [...kept.values()].find(({ manifest: { events } }) => Object.hasOwn(events, type));
    if (!other || isSameEvent(event, other.manifest.events[type]!)) return [];
    const message = `The plugin ${other.id} already declares the event type "${type}" with another schema. Give the type a prefix of its own, or the same JSON Schema in both manifests.`;
    return [{ path: `events.${type}`, message }];
  });
}

/**
 * Returns whether two declarations have the same schema. References are not compared, because they lead to files of
 * different plugins.
 */
function isSameEvent(one: EventDecl, other: EventDecl): boolean {
  if (eventSchemaRef(one) || eventSchemaRef(other)) return false;
  return isDeepStrictEqual(one.schema, other.schema);
}

function dropUnmet(candidates: LoadedPlugin[], knownBroken: BrokenPlugin[]): Related {
  const left = new Map(candidates.map((plugin) => [plugin.id, plugin]));
  const broken: BrokenPlugin[] = [];
  for (const [plugin, chain] of cyclesIn(left)) {
    left.delete(plugin.id);
    const message = `The dependencies form a cycle: ${chain.join(' -> ')}.`;
    broken.push(
      leaveOut(plugin, [{ code: 'CIRCULAR_DEPENDENCY', path: `dependencies.${chain[1]}`, message }]),
    );
  }
  // Excluding a plugin can leave other plugins with an unmet dependency. The check repeats until no plugin is excluded.
  for (let isStable = false; !isStable; ) {
    isStable = true;
    for (const plugin of left.values()) {
      const faults = unmet(plugin, left, [...knownBroken, ...broken]);
      if (faults.length === 0) continue;
      left.delete(plugin.id);
      broken.push(leaveOut(plugin, faults));
      isStable = false;
    }
  }
  return { plugins: inOrder(left), broken };
}

function unmet(plugin: LoadedPlugin, left: Map<string, LoadedPlugin>, broken: BrokenPlugin[]): PluginFault[] {
  return Object.entries(plugin.manifest.dependencies).flatMap(([id, range]): PluginFault[] => {
    const found = left.get(id);
    if (found && semver.satisfies(found.version, range, { includePrerelease: true })) return [];
    const message = found
      ? `The plugin ${id} has version ${found.version}, but ${range} is required.`
      : broken.some((other) => other.id === id)
        ? `The plugin ${id} is required, but it is broken.`
        : `The plugin ${id} (${range}) is required, but it is not installed.`;
    return [{ code: 'MISSING_DEPENDENCY', path: `dependencies.${id}`, message }];
  });
}

/** Returns each plugin in a dependency cycle, with the plugin ids of its shortest cycle. */
function cyclesIn(plugins: Map<string, LoadedPlugin>): Array<[LoadedPlugin, string[]]> {
  return [...plugins.values()].flatMap((plugin): Array<[LoadedPlugin, string[]]> => {
    const chain = shortestCycle(plugin.id, plugins);
    return chain ? [[plugin, chain]] : [];
  });
}

function shortestCycle(start: string, plugins: Map<string, LoadedPlugin>): string[] | undefined {
  const ways: string[][] = [[start]];
  const seen = new Set<string>();
  for (let way = ways.shift(); way; way = ways.shift()) {
    for (const next of Object.keys(plugins.get(way.at(-1)!)?.manifest.dependencies ?? {})) {
      if (next === start) return [...way, next];
      if (seen.has(next)) continue;
      seen.add(next);
      ways.push([...way, next]);
    }
  }
  return undefined;
}

function inOrder(plugins: Map<string, LoadedPlugin>): LoadedPlugin[] {
  const ordered = new Set<LoadedPlugin>();
  const visit = (plugin: LoadedPlugin): void => {
    for (const id of Object.keys(plugin.manifest.dependencies)) {
      const dependency = plugins.get(id);
      if (dependency && !ordered.has(dependency)) visit(dependency);
    }
    ordered.add(plugin);
  };
  for (const plugin of plugins.values()) visit(plugin);
  return [...ordered];
}
