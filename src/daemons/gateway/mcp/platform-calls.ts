import type { CallInput, CallVia, Endpoint, ReplyOf, Role } from '../../../contracts/index.ts';
import { HEADERS } from '../../../contracts/index.ts';
import {
  type CallOptions,
  type Client,
  createClient,
  type Http,
  type Send,
  serviceHeaders,
} from '../../../http/index.ts';
import { PlatformError, toPlatformError } from '../../../kit/errors/errors.ts';
import type { Logger } from '../../../kit/telemetry/logger.ts';
import { roleIn } from '../domain/access/access-rights.ts';
import { nativeCallRule, nativeRule } from '../domain/access/access-rules.ts';
import { requireAccess } from '../domain/access/require-access.ts';
import type { AuditLog } from '../domain/audit/audit-log.ts';
import { recordCall } from '../domain/audit/call-audit.ts';
import type { Principal } from '../domain/identity/authenticator.ts';
import type { InnerCalls } from '../inner-calls.ts';
import { type Upstream, upstreamFor } from '../proxy/upstreams.ts';

/** An authenticated call to the MCP endpoint, on whose behalf tools call the platform. */
export interface McpCall {
  caller: Principal;
  requestId: string;
  traceId: string;
  signal: AbortSignal;
  /** Id of the session of a client of an earlier revision, which tells its requests from those of other clients. */
  connection: string | null;
  /** Whether the client can show forms to a person. */
  elicits: boolean;
  /** How the call is marked for services. By default, it is one of an agent. */
  via?: CallVia;
}

export interface PlatformCallsDeps {
  upstreams: readonly Upstream[];
  innerCalls: InnerCalls;
  audit: AuditLog;
  internalSecret: string;
  logger: Logger;
}

interface Parts {
  params?: object;
  query?: object;
  body?: unknown;
}

/** Longest wait of a call. Tools wait at most 45 s. */
const TIMEOUT_MS = 60_000;

/**
 * Calls endpoints of the REST API for callers of tools. Endpoints of the gateway are called within the process, others
 * over HTTP. Roles, namespaces and the audit log apply as to a call by the client itself.
 */
export class PlatformCalls {
  readonly #http: Http;
  readonly #deps: PlatformCallsDeps;
  readonly #native: Client;
  readonly #clients = new Map<Upstream, Client>();

  constructor(http: Http, deps: PlatformCallsDeps) {
    this.#http = http;
    this.#deps = deps;
    this.#native = createClient({ url: 'http://localhost', peer: 'gateway', send: injectInto(http) });
  }

  /** Returns the reply. Rejects with the error of the endpoint, or FORBIDDEN if the caller's role is too low. */
  async call<E extends Endpoint>(endpoint: E, input: CallInput<E>, call: McpCall): Promise<ReplyOf<E>> {
    const { params = {}, body, query } = (input ?? {}) as Parts;
    const { method, path } = endpoint;
    const { requestId, traceId, signal } = call;
    const rule = nativeCallRule(method, path, params);
    const caller = withoutToolScopes(call.caller, method, path);
    requireAccess(caller, rule, { method, route: path, requestId, traceId }, this.#deps.logger);
    const ids = { [HEADERS.requestId]: requestId, [HEADERS.traceId]: traceId };
    const options = (headers: Record<string, string>): CallOptions => ({
      headers: { ...ids, ...headers },
      signal,
      timeoutMs: TIMEOUT_MS,
    });
    // The audit hook of the gateway records changes by its own endpoints.
    if (this.#isNative(endpoint))
      return this.#native.call(endpoint, input, options(this.#deps.innerCalls.headersFor(call.caller)));
    const { via = 'agent' } = call;
    const headers = serviceHeaders(this.#deps.internalSecret, { ...caller, role: shownRole(caller), via });
    const sent = () => this.#clientOf(path).call(endpoint, input, options(headers));
    if (rule.audit === undefined) return sent();
    const open = { caller: call.caller, rule, params, query, path, requestId, traceId };
    return this.#recorded(sent, (end) =>
      recordCall(this.#deps.audit, open, { ...end, body }, this.#deps.logger),
    );
  }

  async #recorded<Reply>(
    sent: () => Promise<Reply>,
    record: (end: { status: number; reply: unknown }) => Promise<void>,
  ): Promise<Reply> {
    let reply: Reply;
    try {
      reply = await sent();
    } catch (thrown) {
      await record({ status: toPlatformError(thrown).status, reply: null });
      throw thrown;
    }
    await record({ status: 200, reply });
    return reply;
  }

  #isNative({ method, path }: Endpoint): boolean {
    return this.#http.kit.endpoints.some((one) => one.method === method && one.path === path);
  }

  #clientOf(path: string): Client {
    const found = upstreamFor(this.#deps.upstreams, path)?.upstream;
    if (!found) throw new PlatformError('UPSTREAM_UNAVAILABLE', `No service of this gateway serves ${path}.`);
    const known = this.#clients.get(found);
    if (known) return known;
    const url = () => found.origin() + found.basePath;
    const client = createClient({ url, peer: `${found.name} service` });
    this.#clients.set(found, client);
    return client;
  }
}

/**
 * Returns the caller for an endpoint. The scope of the tool has allowed the call already. Scopes that name an object,
 * such as `queue:orders`, are still required.
 */
function withoutToolScopes(caller: Principal, method: string, path: string): Principal {
  if (!caller.access?.scopes || nativeRule(method, path).scope?.includes('{')) return caller;
  return { ...caller, access: { ...caller.access, scopes: null } };
}

/** Returns the role that services see, as for proxied calls. */
export function shownRole({ access, namespaceId }: Principal): Role | null {
  return access?.roles ? roleIn(access.roles, namespaceId) : 'admin';
}

/** Returns a `fetch` that serves requests within the process. */
function injectInto(http: Http): Send {
  return async (url, { method, headers, body, signal }) => {
    const { pathname, search } = new URL(url);
    const response = await http.inject({
      ...{ method: method as 'GET', url: pathname + search, headers, signal },
      ...(body === undefined ? {} : { payload: body }),
    });
    const { statusCode: status, payload } = response;
    const named = response.headers;
    return {
      ok: status >= 200 && status < 300,
      status,
      text: async () => payload,
      headers: { get: (name) => (named[name] === undefined ? null : String(named[name])) },
    };
  };
}
