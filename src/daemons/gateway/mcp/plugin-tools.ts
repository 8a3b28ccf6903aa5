import {
  type CommandDecl,
  commandToolName,
  type getCommand,
  type McpExposure,
  type ReplyOf,
} from '../../../contracts/index.ts';
import { isRecord } from '../../../kit/data/is-record.ts';
import type { LoadedPlugin } from '../../../plugins/index.ts';
import type { PluginRuntime } from '../../plugin-runtime/runtime.ts';
import { runCommand } from './command-run.ts';
import type { McpCall } from './platform-calls.ts';
import type { ObjectSchema, Tool } from './tool.ts';
import { wrappedResult } from './wrapped-results.ts';

type Schemas = Pick<ReplyOf<typeof getCommand>, 'input' | 'output'>;

export interface PluginToolsDeps {
  plugins: Pick<PluginRuntime, 'registry' | 'execute' | 'onReload'>;
  /** Returns the schemas of a command. Rejects while the service that runs plugin routes is away. */
  describe(pluginId: string, commandId: string): Promise<Schemas>;
}

interface Exposed {
  plugin: LoadedPlugin;
  command: CommandDecl;
  mcp: McpExposure;
}

const MAX_REFERENCES = 5;
/** Dialect of the schemas that services describe. */
const DIALECT = 'https://json-schema.org/draft/2020-12/schema';
const ANYTHING: Schemas = { input: null, output: null };

/** The commands that plugins offer to agents. */
export class PluginTools {
  readonly #deps: PluginToolsDeps;
  readonly #schemas = new Map<string, Promise<Schemas>>();

  constructor(deps: PluginToolsDeps) {
    this.#deps = deps;
    deps.plugins.onReload(() => this.#schemas.clear());
  }

  /** Returns the tools for one call, whose caller they run as. */
  async list(call: McpCall): Promise<Tool[]> {
    return Promise.all([...this.#exposed()].map((one) => this.#toolOf(one, call)));
  }

  /** Returns the tool with this name, without the cost of the others. */
  async find(call: McpCall, name: string): Promise<Tool | undefined> {
    for (const one of this.#exposed())
      if (commandToolName(one.plugin.id, one.command.id, one.mcp) === name) return this.#toolOf(one, call);
    return undefined;
  }

  *#exposed(): Generator<Exposed> {
    for (const plugin of this.#deps.plugins.registry.plugins)
      for (const command of plugin.manifest.commands)
        if (command.mcp?.expose) yield { plugin, command, mcp: command.mcp };
  }

  async #toolOf({ plugin, command, mcp }: Exposed, call: McpCall): Promise<Tool> {
    const { input, output } = await this.#schemasOf(plugin.id, command.id);
    const takesObject = input === null || isObjectSchema(input);
    return {
      name: commandToolName(plugin.id, command.id, mcp),
      title: mcp.title ?? `${plugin.manifest.display?.name ?? plugin.id}: ${command.id}`,
      description: mcp.description ?? command.description ?? `The command ${command.id} of ${plugin.id}.`,
      inputSchema: takesObject
        ? objectSchema(input)
        : { type: 'object', properties: { input }, required: ['input'] },
      outputSchema: output !== null && isObjectSchema(output) ? objectSchema(output) : undefined,
      needs: neededRole(mcp),
      readOnly: mcp.readOnly,
      destructive: mcp.destructive,
      hasOutsideData: true,
      mayReturnContent: true,
      run: async (given, run) => {
        const taken = takesObject ? given : (given as { input?: unknown }).input;
        const result = await runCommand(this.#deps.plugins, { plugin, command, input: taken }, call, run);
        return plugin.manifest.mcpServer ? wrappedResult(result) : result;
      },
    };
  }

  #schemasOf(pluginId: string, commandId: string): Promise<Schemas> {
    const key = `${pluginId} ${commandId}`;
    const known = this.#schemas.get(key);
    if (known) return known;
    // Without its schemas, a tool still works: the command validates its input.
    const asked = this.#deps.describe(pluginId, commandId).catch(() => {
      this.#schemas.delete(key);
      return ANYTHING;
    });
    this.#schemas.set(key, asked);
    return asked;
  }
}

/** Returns the lowest role for a command. Without a declaration, a command can change something. */
export function neededRole({ readOnly, destructive }: McpExposure): Tool['needs'] {
  if (destructive) return 'admin';
  return readOnly ? 'viewer' : 'editor';
}

/** Returns the schema as that of an object, or a schema of any object. */
export function objectSchema(schema: Record<string, unknown> | null): ObjectSchema {
  const { $ref: _, ...rest } = schema ?? {};
  return { ...(schema ? { $schema: DIALECT } : {}), ...rest, ...rootOf(schema), type: 'object' };
}

function isObjectSchema(schema: Record<string, unknown>): boolean {
  return rootOf(schema)?.type === 'object';
}

/** Follows the references of a schema's root. Schemas from files are references to their own definitions. */
function rootOf(schema: Record<string, unknown> | null): Record<string, unknown> | undefined {
  let part: unknown = schema;
  for (let hop = 0; hop < MAX_REFERENCES && isRecord(part); hop++) {
    if (typeof part.$ref !== 'string') return part;
    part = pointed(schema, part.$ref);
  }
  return undefined;
}

/** Returns the value to which a JSON pointer such as `#/$defs/order` leads. */
function pointed(document: unknown, reference: string): unknown {
  let part = document;
  for (const name of reference.replace(/^#\//, '').split('/')) {
    const key = name.replaceAll('~1', '/').replaceAll('~0', '~');
    if (!isRecord(part) || !Object.hasOwn(part, key)) return undefined;
    part = part[key];
  }
  return part;
}
