import { type ManifestV3, promptName, promptNameProblem, schemeOf } from '../../contracts/index.ts';
import type { LoadedPlugin, PluginFault } from './types.ts';

type Finding = { path: string; message: string };

function promptsOf({ id: pluginId, mcp }: ManifestV3) {
  return (mcp?.prompts ?? []).map((prompt, index) => ({
    ...{ name: promptName(pluginId, prompt), id: prompt.id, command: prompt.command },
    path: `mcp.prompts[${index}]`,
  }));
}

function resourcesOf({ mcp }: ManifestV3) {
  return (mcp?.resources ?? []).map(({ uri, command }, index) => ({
    ...{ uri, command },
    path: `mcp.resources[${index}]`,
  }));
}

/** Returns a fault for each prompt and resource that is invalid, reserved, or declared twice in the manifest. */
export function mcpOfferFaults(manifest: ManifestV3): PluginFault[] {
  const found = [...promptFaults(manifest), ...resourceFaults(manifest), ...commandFaults(manifest)];
  return found.map((finding) => ({ code: 'INVALID_MANIFEST', ...finding }));
}

function promptFaults(manifest: ManifestV3): Finding[] {
  const owners = new Map<string, string>();
  return promptsOf(manifest).flatMap(({ name, id, path }) => {
    const owner = owners.get(name);
    owners.set(name, owner ?? id);
    const message =
      promptNameProblem(name) ??
      (owner === undefined ? undefined : `the prompt "${owner}" has the name "${name}" too: set "name"`);
    return message === undefined ? [] : [{ path, message }];
  });
}

function resourceFaults(manifest: ManifestV3): Finding[] {
  const known = new Set<string>();
  return resourcesOf(manifest).flatMap(({ uri, path }) => {
    const shape = uri.replace(/\{\w+\}/g, '{}');
    if (known.has(shape)) return [{ path: `${path}.uri`, message: `another resource has the URI "${uri}"` }];
    known.add(shape);
    return [];
  });
}

function commandFaults(manifest: ManifestV3): Finding[] {
  const commands = new Set(manifest.commands.map(({ id }) => id));
  return [...promptsOf(manifest), ...resourcesOf(manifest)]
    .filter(({ command }) => !commands.has(command))
    .map(({ command, path }) => ({
      path: `${path}.command`,
      message: `the manifest has no command "${command}"`,
    }));
}

/** Returns the prompts whose names, and the resources whose schemes, belong to another plugin already. */
export function mcpOfferConflicts({ manifest }: LoadedPlugin, others: Iterable<LoadedPlugin>): Finding[] {
  const prompts = promptsOf(manifest);
  const resources = resourcesOf(manifest);
  if (prompts.length === 0 && resources.length === 0) return [];
  const names = new Map<string, string>();
  const schemes = new Map<string, string>();
  for (const other of others) {
    for (const { name } of promptsOf(other.manifest)) names.set(name, other.id);
    for (const { uri } of resourcesOf(other.manifest)) schemes.set(schemeOf(uri), other.id);
  }
  return [
    ...prompts.flatMap(({ name, path }) => {
      const owner = names.get(name);
      const message = `The prompt name "${name}" already belongs to the plugin ${owner}. Set "name".`;
      return owner === undefined ? [] : [{ path, message }];
    }),
    ...resources.flatMap(({ uri, path }) => {
      const owner = schemes.get(schemeOf(uri));
      const message = `Resources of the scheme "${schemeOf(uri)}" already belong to the plugin ${owner}. Use another scheme.`;
      return owner === undefined ? [] : [{ path: `${path}.uri`, message }];
    }),
  ];
}
