import type { CommandResult, ExecutionRequest } from '../../contracts/index.ts';
import { isPlatformCode } from '../../contracts/index.ts';
import { PlatformError } from '../../kit/errors/errors.ts';
import type { PlatformService } from '../execution.ts';
import { invalid } from './arguments.ts';
import { requireInvoke } from './invoke-permission.ts';

export interface Invocation {
  pluginId: string;
  commandId: string;
  input: unknown;
  /** Request of the calling execution. The invoked command inherits the tenant, user and ids of this request. */
  from: ExecutionRequest;
  /** Nesting level of the invocation, which is limited to prevent endless recursion. */
  depth: number;
  signal: AbortSignal;
}

/** Runs a command. Throws PLUGIN_NOT_FOUND or an error of the command's execution. */
export type InvokeCommand = (invocation: Invocation) => Promise<CommandResult>;

/**
 * Maximum nesting level of invocations. Each waiting invocation occupies a process, so a cycle would use up all
 * processes.
 */
const MAX_DEPTH = 8;
const REF = /^((?:@[^/\s]+\/)?[^@/\s][^/\s]*)\/([^/\s]+)$/;

/**
 * Creates `ctx.invoke`. A call throws PERMISSION_DENIED if `permissions.invoke` lists neither the command nor its
 * plugin. If a command fails, `details.code` of the thrown error is the command's error code.
 */
export function createInvokeService(invoke: InvokeCommand): PlatformService {
  return {
    async run({ request, signal }, [command, input]) {
      const { pluginId, commandId } = parseCommand(command);
      requireInvoke(request, `${pluginId}/${commandId}`);
      const depth = depthOf(request) + 1;
      if (depth > MAX_DEPTH) {
        throw new PlatformError(
          'EXECUTION_ERROR',
          `Plugins invoke each other ${MAX_DEPTH} levels deep; ${request.plugin.id} may not go further.`,
        );
      }
      const result = await invoke({ pluginId, commandId, input, from: request, depth, signal });
      if (result.exitCode === 0) return result.result;
      throw failed(result, `${pluginId}/${commandId}`);
    },
  };
}

function parseCommand(command: unknown): { pluginId: string; commandId: string } {
  const match = typeof command === 'string' ? REF.exec(command) : null;
  if (!match) throw invalid('the command must be "<plugin>/<command>", for example "@acme/orders/list"');
  return { pluginId: match[1]!, commandId: match[2]! };
}

function depthOf({ host, hostContext }: ExecutionRequest): number {
  return host === 'plugin' && typeof hostContext.depth === 'number' ? hostContext.depth : 0;
}

function failed({ exitCode, error }: CommandResult, command: string): PlatformError {
  const code = error?.code ?? 'EXECUTION_ERROR';
  return new PlatformError(
    isPlatformCode(code) ? code : 'EXECUTION_ERROR',
    error?.message ?? `${command} ended with exit code ${exitCode}.`,
    { details: { ...error?.details, code } },
  );
}
