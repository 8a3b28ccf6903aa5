import { type CommandDecl, type CommandResult, isPlatformCode } from '../../../contracts/index.ts';
import { PlatformError } from '../../../kit/errors/errors.ts';
import type { LoadedPlugin } from '../../../plugins/index.ts';
import { commandCall } from '../../plugin-runtime/commands.ts';
import type { PluginRuntime } from '../../plugin-runtime/runtime.ts';
import type { McpCall } from './platform-calls.ts';
import type { ToolRun } from './tool.ts';

export interface CommandOf {
  plugin: LoadedPlugin;
  command: CommandDecl;
}

/** Runs a command for an MCP client. Returns its result, or a question to the client. */
export async function runCommand(
  plugins: Pick<PluginRuntime, 'execute'>,
  { plugin, command, input }: CommandOf & { input: unknown },
  { caller, requestId, traceId }: McpCall,
  { client, signal }: Pick<ToolRun, 'client' | 'signal'>,
): Promise<unknown> {
  const { hostId, namespaceId } = caller;
  const result: CommandResult = await plugins.execute(
    {
      ...commandCall(command),
      ...{ plugin, host: 'cli', input, params: {}, requestId, traceId },
      hostContext: { host: 'cli', command: command.id, mcp: client.answers },
      user: { hostId, namespaceId },
      tenantId: namespaceId,
    },
    {
      signal,
      listener: {
        progress: (...report) => void client.progress(...report).catch(() => {}),
        log: (level, message) => client.log(level, message, plugin.id),
      },
    },
  );
  if (result.exitCode === 0) return (await client.questionOf(result.result)) ?? result.result;
  throw failureOf(result);
}

function failureOf({ exitCode, error }: CommandResult): PlatformError {
  const { code = 'EXECUTION_ERROR', message = `Exit code ${exitCode}`, details = {} } = error ?? {};
  if (isPlatformCode(code)) return new PlatformError(code, message, { details });
  return new PlatformError('EXECUTION_ERROR', message, { details: { ...details, code } });
}
