import type { IncomingHttpHeaders } from 'node:http';
import type { McpHttpHandler } from '@modelcontextprotocol/server';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Http } from '../../../http/index.ts';
import { isRecord } from '../../../kit/data/is-record.ts';
import { PlatformError } from '../../../kit/errors/errors.ts';
import type { Random } from '../../../kit/security/random.ts';
import type { Resources } from '../../define-daemon.ts';
import type { AuditLog } from '../domain/audit/audit-log.ts';
import type { Admins } from '../domain/identity/admins.ts';
import type { Principal } from '../domain/identity/authenticator.ts';
import type { InnerCalls } from '../inner-calls.ts';
import type { Upstream } from '../proxy/upstreams.ts';
import { authInfoOf } from './authenticated-call.ts';
import { CallsInFlight } from './calls-in-flight.ts';
import { ToolCatalog, type ToolSource } from './catalog.ts';
import { mcpRequest } from './mcp-request.ts';
import { type McpCall, PlatformCalls } from './platform-calls.ts';
import type { PluginOffers } from './plugin-offers.ts';
import { StreamedRequests } from './streamed-requests.ts';
import { showsForms } from './tasks/forms.ts';
import { answerIn, QuestionIds } from './tasks/question-ids.ts';
import { RunAnswers } from './tasks/run-answers.ts';
import { Tasks, type TasksDeps } from './tasks/tasks.ts';
import { ToolAccess } from './tool-access.ts';
import { ToolCalls, type ToolCallsDeps } from './tool-calls.ts';
import { ToolChanges } from './tool-changes.ts';

/** Dependencies of the endpoint, from the services of the gateway. */
export interface McpParts
  extends Pick<ToolCallsDeps, 'limiter' | 'limits'>,
    Pick<TasksDeps, 'clock' | 'maxTtlMs'> {
  admins: Admins;
  audit: AuditLog;
  upstreams: readonly Upstream[];
  innerCalls: InnerCalls;
  internalSecret: string;
  tools: ToolSource;
  offers: PluginOffers;
  /** Returns the tools of workflows, to notice changes. */
  workflowTools(): Promise<unknown>;
  random: Random;
  logger: Resources['logger'];
}

/** The connection on which the response is sent. */
export interface ClientConnection {
  /** Aborts if the client disconnects before the response is complete. */
  signal: AbortSignal;
  /** Registers a listener for the end of the response, whether it is complete or not. */
  onClose(listener: () => void): void;
}

/** Serves MCP requests. Loads the MCP library on the first request. */
export class McpEndpoint {
  readonly #http: Http;
  readonly #parts: McpParts;
  readonly #changes: ToolChanges;
  #loading: Promise<Loaded> | undefined;

  constructor(http: Http, parts: McpParts) {
    this.#http = http;
    this.#parts = parts;
    this.#changes = new ToolChanges(parts.workflowTools, () => void this.toolsChanged());
  }

  /** Returns the answer of the MCP library to a request of `caller`. */
  async answer(
    request: FastifyRequest,
    caller: Principal,
    { signal, onClose }: ClientConnection,
  ): Promise<Response> {
    const { handler, answers, inFlight, streamedRequests } = await this.#loaded();
    const { id: requestId, traceId, method, headers, body: parsedBody } = request;
    if (parsedBody === undefined || parsedBody === null)
      throw new PlatformError('VALIDATION_ERROR', 'The body must be a JSON-RPC message.');
    const connection = connectionOf(headers);
    const elicits = connection?.startsWith(FORMS_PREFIX) === true;
    const call: McpCall = { caller, requestId, traceId, signal, connection, elicits };
    const answered = answerIn(parsedBody);
    if (answered) {
      await answers.take(answered, call);
      return new Response(null, { status: 202 });
    }
    if (streamedRequests.take(parsedBody, call)) return new Response(null, { status: 202 });
    inFlight.cancelBy(parsedBody, call);
    const sent = mcpRequest(method, headers, signal);
    const response = await handler.fetch(sent, { parsedBody, authInfo: authInfoOf(call) });
    if (isListen(parsedBody) && isStream(response) && !signal.aborted) onClose(this.#changes.watch());
    if (response.ok && isInitialize(parsedBody)) {
      const prefix = declaresForms(parsedBody) ? FORMS_PREFIX : PLAIN_PREFIX;
      response.headers.set(SESSION_HEADER, prefix + this.#parts.random.secret(16));
    }
    return response;
  }

  /** Tells clients that listen for changes that the list of tools has changed. */
  async toolsChanged(): Promise<void> {
    (await this.#handler())?.notify.toolsChanged();
  }

  /** Tells clients that listen for changes that what plugins offer has changed. */
  async offersChanged(): Promise<void> {
    const notify = (await this.#handler())?.notify;
    notify?.toolsChanged();
    notify?.promptsChanged();
    notify?.resourcesChanged();
  }

  /** Ends open streams. */
  async close(): Promise<void> {
    this.#changes.close();
    await (await this.#handler())?.close();
  }

  /** Returns the handler if a request has loaded it. */
  async #handler(): Promise<McpHttpHandler | undefined> {
    // The request reports a failed load.
    return (await this.#loading?.catch(() => undefined))?.handler;
  }

  /** Loads the library. After a failure, for example for want of file descriptors, the next request tries again. */
  #loaded(): Promise<Loaded> {
    this.#loading ??= this.#load().catch((error) => {
      this.#loading = undefined;
      throw error;
    });
    return this.#loading;
  }

  async #load(): Promise<Loaded> {
    const { admins, audit, limiter, limits, tools, offers, internalSecret, logger, clock, random } =
      this.#parts;
    const { createHandler } = await import('./mcp-handler.ts');
    const access = new ToolAccess(admins, logger);
    const toolCalls = new ToolCalls({ access, audit, limiter, limits, logger });
    const platform = new PlatformCalls(this.#http, this.#parts);
    const ids = new QuestionIds(internalSecret, random);
    const answers = new RunAnswers({ platform, access, toolCalls, ids, logger });
    const { maxTtlMs } = this.#parts;
    const tasks = new Tasks({ platform, access, toolCalls, answers, clock, maxTtlMs });
    const catalog = new ToolCatalog(access, tools);
    const services = { access, logger, catalog, toolCalls, platform, tasks, answers, ids };
    const inFlight = new CallsInFlight();
    const streamedRequests = new StreamedRequests(random);
    const parts = { ...services, offers, internalSecret, inFlight, streamedRequests };
    return { answers, inFlight, streamedRequests, handler: createHandler(parts) };
  }
}

interface Loaded {
  handler: McpHttpHandler;
  answers: RunAnswers;
  inFlight: CallsInFlight;
  streamedRequests: StreamedRequests;
}

const SESSION_HEADER = 'mcp-session-id';
/** Prefix of sessions of clients that show forms. A session has no other state. */
const FORMS_PREFIX = 'forms-';
const PLAIN_PREFIX = 'plain-';
const MAX_SESSION_CHARS = 64;

function connectionOf({ [SESSION_HEADER]: session }: IncomingHttpHeaders): string | null {
  const isOurs =
    typeof session === 'string' && (session.startsWith(FORMS_PREFIX) || session.startsWith(PLAIN_PREFIX));
  return isOurs && session.length <= MAX_SESSION_CHARS ? session : null;
}

const isListen = (body: unknown): boolean => isRecord(body) && body.method === 'subscriptions/listen';

/** Returns whether the response is a stream. Refused subscriptions get one JSON-RPC error. */
const isStream = ({ headers }: Response): boolean =>
  headers.get('content-type')?.startsWith('text/event-stream') === true;

const isInitialize = (body: unknown): boolean => isRecord(body) && body.method === 'initialize';

/** Returns whether the message begins a connection of a client that shows forms. */
function declaresForms(body: unknown): boolean {
  if (!isRecord(body) || body.method !== 'initialize' || !isRecord(body.params)) return false;
  const { capabilities } = body.params;
  return isRecord(capabilities) && showsForms(capabilities.elicitation);
}

/** Sends a fetch response. Only streams are sent in parts. */
export async function sendResponse(reply: FastifyReply, response: Response): Promise<FastifyReply> {
  reply.code(response.status).header('cache-control', 'no-store');
  response.headers.forEach((value, name) => void reply.header(name, value));
  return reply.send(isStream(response) ? response.body : await response.text());
}
