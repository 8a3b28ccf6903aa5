import type { CommandDecl, CommandResult } from '../../contracts/index.ts';
import { nearest } from '../../kit/data/nearest.ts';
import { PlatformError } from '../../kit/errors/errors.ts';
import type { Invocation, LoadedPlugin, PluginRegistry } from '../../plugins/index.ts';
import type { ExecuteOptions, PluginCall } from './plugin-call.ts';

/** Returns the command of a loaded plugin. Throws PLUGIN_NOT_FOUND, or NOT_FOUND for an unknown command. */
export function requireCommand(
  registry: PluginRegistry,
  pluginId: string,
  commandId: string,
): { plugin: LoadedPlugin; command: CommandDecl } {
  const plugin = registry.require(pluginId);
  const known = plugin.manifest.commands.map(({ id }) => id);
  const command = plugin.manifest.commands.find(({ id }) => id === commandId);
  if (command) return { plugin, command };
  const meant = nearest(commandId, known);
  throw new PlatformError(
    'NOT_FOUND',
    `The plugin ${pluginId} has no command "${commandId}"${meant ? `; did you mean "${meant}"?` : '.'}`,
    { details: { pluginId, commands: known } },
  );
}

/** Returns the fields of a call that come from a command's declaration. */
export function commandCall({ handler, input, output, timeoutMs, permissions }: CommandDecl) {
  return {
    handler,
    schemas: { ...(input ? { input } : {}), ...(output ? { output } : {}) },
    ...(timeoutMs === undefined ? {} : { timeoutMs }),
    ...(permissions ? { permissions } : {}),
  };
}

/** Members of a plugin runtime that are needed to run a command. */
interface CommandRunner {
  readonly registry: PluginRegistry;
  execute(call: PluginCall, options?: ExecuteOptions): Promise<CommandResult>;
}

/** Runs a command for `ctx.invoke`, with the tenant, user and ids of the calling execution. */
export async function invokeCommand(
  runtime: CommandRunner,
  { pluginId, commandId, input, from, depth, signal }: Invocation,
): Promise<CommandResult> {
  const { plugin, command } = requireCommand(runtime.registry, pluginId, commandId);
  const { user, tenantId, requestId, traceId, spanId } = from;
  return runtime.execute(
    {
      ...commandCall(command),
      plugin,
      host: 'plugin',
      hostContext: { host: 'plugin', from: from.plugin.id, depth },
      input,
      params: {},
      user,
      tenantId,
      requestId,
      traceId,
      ...(spanId === undefined ? {} : { parentSpanId: spanId }),
    },
    { signal },
  );
}
