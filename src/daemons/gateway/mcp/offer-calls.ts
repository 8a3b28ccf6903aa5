import type { InputRequiredResult, ServerContext } from '@modelcontextprotocol/server';
import { PlatformError } from '../../../kit/errors/errors.ts';
import type { McpCall } from './platform-calls.ts';
import { protocolError } from './protocol-error.ts';
import type { ProtocolServerDeps } from './protocol-server-deps.ts';
import { ERROR_KEY } from './results.ts';
import type { Tool } from './tool.ts';
import { ClientQuestion } from './tool-client.ts';

/** Value of a command, or the question that it asks the client first. */
type Answer = { value: unknown } | { question: InputRequiredResult };

/**
 * Runs the command of a prompt or resource with the access, limits and audit entry of a tool. `subject` is the name or
 * URI. Throws a JSON-RPC error if the command fails.
 */
export async function runOffer(
  { toolCalls, platform, clientOf, inFlight }: ProtocolServerDeps,
  tool: Tool,
  { input, subject }: { input: unknown; subject: string },
  call: McpCall,
  context: ServerContext,
): Promise<Answer> {
  let value: unknown;
  let failure: unknown;
  const { mcpReq } = context;
  const from = { ...call, signal: AbortSignal.any([call.signal, mcpReq.signal]) };
  const client = clientOf(context, subject, call);
  const noted: Tool = {
    ...tool,
    run: async (given, run) => {
      try {
        value = await tool.run(given, run);
      } catch (thrown) {
        failure = thrown;
        throw thrown;
      }
      // Content is bounded where it becomes the contents of the resource or the messages of the prompt.
      return value instanceof ClientQuestion ? value : null;
    },
  };
  const result = await inFlight.run(from, mcpReq.id, (signal) =>
    toolCalls.run(noted, input, { ...from, signal }, { platform, client }),
  );
  if (value instanceof ClientQuestion) return { question: value.result };
  if ('isError' in result && result.isError)
    throw failure === undefined
      ? refusal(result._meta?.[ERROR_KEY])
      : protocolError(failure, { untrusted: tool.hasOutsideData });
  return { value };
}

/** Returns the error with which a call was refused before it ran. */
function refusal(error: unknown): PlatformError {
  const { code, message, details } = error as { code: never; message: string; details?: object };
  return new PlatformError(code, message, { details: { ...details } });
}
