import { commandToolName, type ManifestV3, toolNameProblem } from '../../contracts/index.ts';
import type { LoadedPlugin, PluginFault } from './types.ts';

interface CommandTool {
  name: string;
  /** Path of the command in the manifest. */
  path: string;
  commandId: string;
}

/** Returns the commands that a manifest offers to agents. */
function toolsOf({ id: pluginId, commands }: ManifestV3): CommandTool[] {
  return commands.flatMap(({ id, mcp }, index) => {
    if (!mcp?.expose) return [];
    return [{ name: commandToolName(pluginId, id, mcp), path: `commands[${index}].mcp`, commandId: id }];
  });
}

/** Returns a fault for each tool name that is invalid, reserved, or used twice in the manifest. */
export function toolNameFaults(manifest: ManifestV3): PluginFault[] {
  const owners = new Map<string, string>();
  return toolsOf(manifest).flatMap(({ name, path, commandId }): PluginFault[] => {
    const owner = owners.get(name);
    if (owner === undefined) owners.set(name, commandId);
    const message =
      toolNameProblem(name) ??
      (owner === undefined
        ? undefined
        : `the command "${owner}" has the tool name "${name}" too: set mcp.name`);
    return message === undefined ? [] : [{ code: 'INVALID_MANIFEST', path, message }];
  });
}

/** Returns the tools whose names belong to another plugin already. */
export function toolConflicts(
  plugin: LoadedPlugin,
  others: Iterable<LoadedPlugin>,
): Array<{ path: string; message: string }> {
  const tools = toolsOf(plugin.manifest);
  if (tools.length === 0) return [];
  const owners = new Map(
    [...others].flatMap(({ id, manifest }) => toolsOf(manifest).map(({ name }) => [name, id])),
  );
  return tools.flatMap(({ name, path }) => {
    const owner = owners.get(name);
    if (owner === undefined) return [];
    return [
      { path, message: `The tool name "${name}" already belongs to the plugin ${owner}. Set mcp.name.` },
    ];
  });
}
