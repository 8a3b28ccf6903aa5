import type { McpHttpHandler } from '@modelcontextprotocol/server';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Http } from '../../../http/index.ts';
import { PlatformError } from '../../../kit/errors/errors.ts';
import type { Resources } from '../../define-daemon.ts';
import type { AuditLog } from '../domain/audit/audit-log.ts';
import type { Admins } from '../domain/identity/admins.ts';
import type { Principal } from '../domain/identity/authenticator.ts';
import type { InnerCalls } from '../inner-calls.ts';
import type { Upstream } from '../proxy/upstreams.ts';
import { type FindTools, ToolCatalog } from './catalog.ts';
import { PlatformCalls } from './platform-calls.ts';
import { ToolAccess } from './tool-access.ts';
import { ToolCalls, type ToolCallsDeps } from './tool-calls.ts';

/** Dependencies of the endpoint, from the services of the gateway. */
export interface McpParts extends Pick<ToolCallsDeps, 'limiter' | 'limits'> {
  admins: Admins;
  audit: AuditLog;
  upstreams: readonly Upstream[];
  innerCalls: InnerCalls;
  internalSecret: string;
  findTools: FindTools;
  logger: Resources['logger'];
}

/** Serves MCP requests. Loads the MCP library on the first request. */
export class McpEndpoint {
  readonly #http: Http;
  readonly #parts: McpParts;
  #loading: Promise<McpHttpHandler> | undefined;

  constructor(http: Http, parts: McpParts) {
    this.#http = http;
    this.#parts = parts;
  }

  /** Returns the answer of the MCP library to a request of `caller`. */
  async answer(request: FastifyRequest, caller: Principal, signal: AbortSignal): Promise<Response> {
    this.#loading ??= this.#load();
    const handler = await this.#loading;
    const { id: requestId, traceId, method, headers, body: parsedBody } = request;
    if (parsedBody === undefined || parsedBody === null)
      throw new PlatformError('VALIDATION_ERROR', 'The body must be a JSON-RPC message.');
    const shown = Object.entries(headers).flatMap(([name, value]) =>
      typeof value === 'string' ? [[name, value]] : [],
    );
    const sent = new Request(new URL(request.url, 'http://localhost'), {
      ...{ method, signal, headers: shown as [string, string][] },
    });
    const extra = { call: { caller, requestId, traceId, signal } };
    const authInfo = { token: '', clientId: caller.hostId, scopes: [], extra };
    return handler.fetch(sent, { parsedBody, authInfo });
  }

  /** Tells clients that listen for changes that the list of tools has changed. */
  async toolsChanged(): Promise<void> {
    (await this.#loading)?.notify.toolsChanged();
  }

  /** Ends open streams. */
  async close(): Promise<void> {
    await (await this.#loading)?.close();
  }

  async #load(): Promise<McpHttpHandler> {
    const { admins, audit, limiter, limits, findTools, logger } = this.#parts;
    const { createHandler } = await import('./mcp-handler.ts');
    const access = new ToolAccess(admins, logger);
    return createHandler({
      ...{ access, logger },
      catalog: new ToolCatalog(access, findTools),
      toolCalls: new ToolCalls({ access, audit, limiter, limits, logger }),
      platform: new PlatformCalls(this.#http, this.#parts),
    });
  }
}

/** Sends a fetch response, which can be a stream. */
export async function sendResponse(reply: FastifyReply, response: Response): Promise<FastifyReply> {
  reply.code(response.status).header('cache-control', 'no-store');
  response.headers.forEach((value, name) => void reply.header(name, value));
  return reply.send(response.body ?? '');
}
