import {
  CLIENT_CAPABILITIES_META_KEY,
  createRequestStateCodec,
  inputRequired,
  type ServerContext,
} from '@modelcontextprotocol/server';
import { AskResult, type ClientAnswers, type ClientRequest } from '../../../contracts/index.ts';
import { firstIssue } from '../../../kit/data/first-issue.ts';
import { isRecord } from '../../../kit/data/is-record.ts';
import { PlatformError } from '../../../kit/errors/errors.ts';
import { deriveKey } from '../../../kit/security/keys.ts';
import { callerKey, callOf } from './authenticated-call.ts';
import type { ClientLogs } from './client-logs.ts';
import type { McpCall } from './platform-calls.ts';
import { ClientQuestion, type ToolClient } from './tool-client.ts';

const STATE_TTL_S = 3600;
const MAX_STATE_CHARS = 16_000;
const KINDS = ['elicitation', 'sampling', 'roots'];

/** The state of a question, as it is signed. `of` is the tool, resource or prompt. */
interface SignedState {
  of: string;
  state?: unknown;
}

/** Signs the state of questions, so that clients cannot change it or use it for another caller. */
export function createStateCodec(internalSecret: string) {
  return createRequestStateCodec<SignedState>({
    key: deriveKey(internalSecret, 'mcp request state'),
    ttlSeconds: STATE_TTL_S,
    bind: ({ mcpReq, http }) => callerKey(callOf(http?.authInfo), mcpReq.method),
  });
}

export type StateCodec = ReturnType<typeof createStateCodec>;

/** Returns the client of a call of `subject`, which is the name of a tool or prompt, or the URI of a resource. */
export function toolClientOf(
  context: ServerContext,
  subject: string,
  { codec, logs, call }: { codec: StateCodec; logs: ClientLogs; call: McpCall },
): ToolClient {
  const { mcpReq } = context;
  const progressToken = mcpReq._meta?.progressToken;
  return {
    async progress(done, total, message) {
      if (progressToken === undefined) return;
      const more = {
        ...(total === undefined ? {} : { total }),
        ...(message === undefined ? {} : { message }),
      };
      const params = { progressToken, progress: done, ...more };
      await mcpReq.notify({ method: 'notifications/progress', params });
    },
    log: (level, message, source) => logs.send(context, callerKey(call), { level, message, source }),
    answers: answersOf(context, subject, call),
    async questionOf(value) {
      if (!isRecord(value) || !Object.hasOwn(value, '$ask')) return undefined;
      const { requests, state } = parsedAsk(value).$ask;
      const requestState = await codec.mint(
        { of: subject, ...(state === undefined ? {} : { state }) },
        context,
      );
      const inputRequests = Object.fromEntries(
        Object.entries(requests).map(([key, request]) => [key, wireRequest(request)]),
      );
      return new ClientQuestion(inputRequired({ inputRequests: inputRequests as never, requestState }));
    },
  };
}

function answersOf({ mcpReq }: ServerContext, subject: string, { elicits }: McpCall): ClientAnswers {
  const signed = mcpReq.requestState<SignedState>();
  const declared = (mcpReq.envelope as Record<string, unknown> | undefined)?.[CLIENT_CAPABILITIES_META_KEY];
  // Requests of the revision 2025-11-25 have no envelope. Their session says whether the client shows forms.
  const isLegacy = mcpReq.envelope === undefined;
  const supported = isLegacy
    ? KINDS.filter((kind) => elicits && kind === 'elicitation')
    : KINDS.filter((kind) => isRecord(declared) && Object.hasOwn(declared, kind));
  // Answers to a question of another tool are no answers to this one.
  if (signed && signed.of !== subject) return { answers: {}, supported };
  const state = signed?.state === undefined ? {} : { state: signed.state };
  return { answers: mcpReq.inputResponses ?? {}, supported, ...state };
}

function wireRequest(request: ClientRequest): object {
  return request.method === 'roots/list' ? { method: 'roots/list', params: {} } : request;
}

function parsedAsk(value: unknown): AskResult {
  const parsed = AskResult.safeParse(value);
  if (!parsed.success)
    throw new PlatformError(
      'EXECUTION_ERROR',
      `The command asks its client in a way that is not valid: ${firstIssue(parsed.error, 'result')}`,
    );
  const { length } = JSON.stringify(parsed.data.$ask.state ?? null);
  if (length > MAX_STATE_CHARS)
    throw new PlatformError(
      'PAYLOAD_TOO_LARGE',
      `The state of the question has ${length} characters as JSON; at most ${MAX_STATE_CHARS} are allowed.`,
    );
  return parsed.data;
}
