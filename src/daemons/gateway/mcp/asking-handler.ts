import {
  type InputRequiredResult,
  isInputRequiredResult,
  type JSONRPCRequest,
  type Result,
  type Server,
  type ServerContext,
} from '@modelcontextprotocol/server';
import { PlatformError } from '../../../kit/errors/errors.ts';
import { minutes } from '../../../kit/time/duration.ts';
import type { McpCall } from './platform-calls.ts';
import { protocolError, reported } from './protocol-error.ts';
import type { ProtocolServerDeps } from './protocol-server-deps.ts';
import { Elicited } from './tasks/elicited.ts';
import type { RequestHandler } from './tasks/task-server.ts';

const MAX_WAIT_MS = minutes(10);
const MAX_ROUNDS = 8;

/**
 * Returns a handler that asks the client on the stream of its call, and then runs again with the answers, as clients of
 * the revision 2026-07-28 do by themselves. Calls that wait have permits of their own.
 */
export function askingHandler(
  server: Server,
  deps: Pick<ProtocolServerDeps, 'codec' | 'inFlight' | 'streamedRequests' | 'toolCalls'>,
  call: McpCall,
): (handler: RequestHandler) => RequestHandler {
  const { codec, toolCalls } = deps;
  return (handler) =>
    async (request: JSONRPCRequest, context: ServerContext): Promise<Result> => {
      let result = await handler(request, context);
      for (let round = 0; round < MAX_ROUNDS && isInputRequiredResult(result); round++) {
        const asked = result;
        if (!call.elicits || !asksForms(asked)) return asked;
        const inputResponses = await reported(() =>
          toolCalls.limited(call, () => askAll(server, deps, asked, { call, context }), { isWait: true }),
        );
        const state = asked.requestState && (await codec.verify(asked.requestState, context));
        const mcpReq = { ...context.mcpReq, inputResponses, requestState: <T>() => state as T };
        result = await handler(request, { ...context, mcpReq });
      }
      if (isInputRequiredResult(result))
        throw protocolError(
          new PlatformError('EXECUTION_ERROR', `The command has asked its client ${MAX_ROUNDS} times.`),
        );
      return result;
    };
}

/** Asks all questions of a result. Rejects if one is not answered in time, or if the call ends. */
async function askAll(
  server: Server,
  { inFlight, streamedRequests }: Pick<ProtocolServerDeps, 'inFlight' | 'streamedRequests'>,
  { inputRequests = {} }: InputRequiredResult,
  { call, context: { mcpReq } }: { call: McpCall; context: ServerContext },
): Promise<Record<string, unknown>> {
  const failed = new AbortController();
  const timeout = AbortSignal.timeout(MAX_WAIT_MS);
  const ends = AbortSignal.any([mcpReq.signal, timeout, failed.signal]);
  const ask = async (
    [key, { method, params }]: [string, Asked],
    signal: AbortSignal,
  ): Promise<[string, unknown]> => {
    const send = async (id: string): Promise<void> =>
      server.transport?.send(
        { ...{ jsonrpc: '2.0', id, method }, params: { mode: 'form', ...params } },
        { relatedRequestId: mcpReq.id },
      );
    return [key, answerOf(key, await streamedRequests.ask(call, send, signal))];
  };
  try {
    return await inFlight.run({ ...call, signal: ends }, mcpReq.id, async (signal) => {
      const requests = Object.entries(inputRequests as AskedByKey);
      return Object.fromEntries(await Promise.all(requests.map((request) => ask(request, signal))));
    });
  } catch (thrown) {
    if (!timeout.aborted) throw thrown;
    throw new PlatformError('EXECUTION_TIMEOUT', 'The client did not answer within 10 minutes.');
  } finally {
    failed.abort();
  }
}

interface Asked {
  method: string;
  params?: Record<string, unknown>;
}
type AskedByKey = Readonly<Record<string, Asked>>;

/** Clients of this revision are asked for forms only, which they declare at the start of a session. */
function asksForms({ inputRequests = {} }: InputRequiredResult): boolean {
  return Object.values(inputRequests as AskedByKey).every(({ method }) => method === 'elicitation/create');
}

function answerOf(key: string, { result }: Record<string, unknown>): unknown {
  const answer = Elicited.safeParse(result);
  if (answer.success) return answer.data;
  throw new PlatformError(
    'VALIDATION_ERROR',
    `The client did not answer "${key}": an answer needs an action (accept, decline or cancel).`,
  );
}
