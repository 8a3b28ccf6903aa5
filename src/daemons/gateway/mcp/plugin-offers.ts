import {
  type CommandDecl,
  commandToolName,
  type PromptDecl,
  promptName,
  type ResourceDecl,
} from '../../../contracts/index.ts';
import type { LoadedPlugin } from '../../../plugins/index.ts';
import type { PluginRuntime } from '../../plugin-runtime/runtime.ts';
import { runCommand } from './command-run.ts';
import type { McpCall } from './platform-calls.ts';
import { neededRole } from './plugin-tools.ts';
import type { Tool } from './tool.ts';

interface Offer<Decl> {
  declared: Decl;
  plugin: LoadedPlugin;
  command: CommandDecl;
}

export interface OfferedPrompt extends Offer<PromptDecl> {
  name: string;
}

export type OfferedResource = Offer<ResourceDecl>;

/** A resource that a URI names, with the parameters of its template. */
export interface FoundResource {
  resource: OfferedResource;
  parameters: Readonly<Record<string, string>>;
}

/** Text before the parameter of a segment, its name, and the text after it. */
const PARAMETER = /^([^{]*)\{(\w+)\}(.*)$/;

/** The prompts and resources that plugins offer to MCP clients. @spec docs/mcp.md "Offer prompts and resources" */
export class PluginOffers {
  readonly #plugins: Pick<PluginRuntime, 'registry' | 'execute'>;

  constructor(plugins: Pick<PluginRuntime, 'registry' | 'execute'>) {
    this.#plugins = plugins;
  }

  prompts(): OfferedPrompt[] {
    return this.#offers(({ manifest }) => manifest.mcp?.prompts).map((offer) => ({
      ...offer,
      name: promptName(offer.plugin.id, offer.declared),
    }));
  }

  resources(): OfferedResource[] {
    return this.#offers(({ manifest }) => manifest.mcp?.resources);
  }

  /** Returns the resource of a URI. A URI without parameters wins over templates. */
  find(uri: string): FoundResource | undefined {
    const all = this.resources();
    const same = all.find(({ declared }) => declared.uri === uri && !isTemplate(declared.uri));
    if (same) return { resource: same, parameters: {} };
    for (const resource of all) {
      const parameters = isTemplate(resource.declared.uri) ? matched(resource.declared.uri, uri) : undefined;
      if (parameters) return { resource, parameters };
    }
    return undefined;
  }

  /** Returns the command of an offer as a tool, so that it is checked, limited and recorded like one. */
  toolOf({ plugin, command }: Offer<unknown>, call: McpCall): Tool {
    const { mcp } = command;
    const exposure = mcp ?? { expose: false, readOnly: true, destructive: false };
    return {
      name: commandToolName(plugin.id, command.id, exposure),
      ...{ title: command.id, description: command.id, inputSchema: { type: 'object' } },
      needs: neededRole(exposure),
      ...{ readOnly: exposure.readOnly, destructive: exposure.destructive },
      ...{ hasOutsideData: true, mayReturnContent: true },
      run: (input, run) => runCommand(this.#plugins, { plugin, command, input }, call, run),
    };
  }

  #offers<Decl extends { command: string }>(
    declaredBy: (plugin: LoadedPlugin) => readonly Decl[] | undefined,
  ): Array<Offer<Decl>> {
    return this.#plugins.registry.plugins.flatMap((plugin) =>
      (declaredBy(plugin) ?? []).flatMap((declared) => {
        const command = plugin.manifest.commands.find(({ id }) => id === declared.command);
        return command ? [{ declared, plugin, command }] : [];
      }),
    );
  }
}

export function isTemplate(uri: string): boolean {
  return uri.includes('{');
}

/** Returns the parameters with which the template becomes the URI. A parameter contains no slash. */
function matched(template: string, uri: string): Record<string, string> | undefined {
  const parts = template.split('/');
  const given = uri.split('/');
  if (parts.length !== given.length) return undefined;
  const parameters: Record<string, string> = {};
  for (const [index, part] of parts.entries()) {
    const segment = given[index]!;
    const [, before = '', name, after = ''] = PARAMETER.exec(part) ?? [];
    if (name === undefined) {
      if (part !== segment) return undefined;
      continue;
    }
    const value = decoded(segment.slice(before.length, segment.length - after.length));
    const fits = segment.length > before.length + after.length;
    if (!fits || !segment.startsWith(before) || !segment.endsWith(after) || value === undefined)
      return undefined;
    parameters[name] = value;
  }
  return parameters;
}

function decoded(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}
