import type { IncomingMessage, ServerResponse } from 'node:http';
import { ANONYMOUS_HOST, type Caller } from '../../../contracts/index.ts';
import { type ClientSideOf, type HttpKit, idsOf, pathOf, requireValidRequest } from '../../../http/index.ts';
import type { MaybePromise } from '../../../kit/data/maybe-promise.ts';
import { toPlatformError } from '../../../kit/errors/errors.ts';
import { AccessRules, type FoundRule } from '../domain/access/access-rules.ts';
import { requireAccess } from '../domain/access/require-access.ts';
import type { AuditLog } from '../domain/audit/audit-log.ts';
import { recordCall } from '../domain/audit/call-audit.ts';
import { actingNamespace } from '../domain/identity/acting-namespace.ts';
import type { Admins } from '../domain/identity/admins.ts';
import type { Authenticator } from '../domain/identity/authenticator.ts';
import { authorizationOf } from '../domain/identity/bearer.ts';
import type { IsPublicRoute } from '../domain/public-routes.ts';
import { countedOf, type LimitHeaders, type LimitRequests } from '../domain/request-limits.ts';
import type { Forward } from '../proxy/forward.ts';
import type { RecordEnd } from '../proxy/held-answer.ts';
import { answerError, type ProxiedCall } from '../proxy/proxied-call.ts';
import type { ForwardedCaller } from '../proxy/request-headers.ts';
import type { Upstream } from '../proxy/upstreams.ts';

export interface ProxiedCallsServices {
  authenticator: Authenticator;
  admins: Admins;
  audit: AuditLog;
  limitRequests: LimitRequests | null;
  forward: Forward;
  /** Returns whether a route can be called without a token. Null unless `gateway.publicPluginRoutes` is enabled. */
  isPublicRoute: IsPublicRoute | null;
  clientSideOf: ClientSideOf;
}

/** Keeps HTML of upstreams, such as plugin routes, from running on the origin of the studio. @spec docs/studio.md */
const SANDBOX = ['content-security-policy', 'sandbox'];

/** Caller identity for requests without a token to public routes. @spec docs/gateway.md "Routes without a token" */
const ANONYMOUS: ForwardedCaller = {
  hostId: ANONYMOUS_HOST,
  namespaceId: 'default',
  kind: 'anonymous',
};

/**
 * Authenticates, rate-limits and forwards calls to upstreams. Steps are synchronous where possible, because each
 * promise adds latency. @spec Authentication 1
 */
export class ProxiedCalls {
  readonly #kit: HttpKit;
  readonly #services: ProxiedCallsServices;
  readonly #rules = new AccessRules();

  constructor(kit: HttpKit, services: ProxiedCallsServices) {
    this.#kit = kit;
    this.#services = services;
  }

  /** Serves one call. `corsHeaders` is a flat list of header names and values to add to the response. */
  serve(
    request: IncomingMessage,
    response: ServerResponse,
    { upstream, pattern }: { upstream: Upstream; pattern: string },
    corsHeaders: readonly string[] | null,
  ): void {
    const kit = this.#kit;
    const startedAt = performance.now();
    kit.lastRequestAt = startedAt;
    const { requestId, traceId, spanId } = idsOf(request.headers, kit.random);
    const call: ProxiedCall = {
      kit,
      request,
      response,
      upstream,
      route: pattern,
      startedAt,
      requestId,
      traceId,
      spanId,
      client: this.#services.clientSideOf(request),
      corsHeaders,
      caller: null,
    };
    try {
      requireValidRequest(request, kit.checkHost);
      const caller = this.#callerOf(call);
      if (caller instanceof Promise)
        caller.then((known) => this.#limit(call, known)).catch((error) => this.#refuse(call, error));
      else this.#limit(call, caller)?.catch((error) => this.#refuse(call, error));
    } catch (error) {
      this.#refuse(call, error);
    }
  }

  #callerOf(call: ProxiedCall): MaybePromise<ForwardedCaller> {
    if (this.#needsNoToken(call)) return ANONYMOUS;
    const { request, requestId, traceId, client } = call;
    const { rawHeaders } = request;
    return this.#services.authenticator.authenticate({ rawHeaders, requestId, traceId, ip: client.ip });
  }

  /** Returns whether the call has no token and its route is public. A token that is present is always verified. */
  #needsNoToken({ request, upstream }: ProxiedCall): boolean {
    const { isPublicRoute } = this.#services;
    if (!isPublicRoute || upstream.name !== 'rest') return false;
    if (authorizationOf(request.rawHeaders) !== undefined) return false;
    return isPublicRoute(request.method!, pathOf(request.url!));
  }

  /**
   * Applies the rate limits and forwards the call. Returns a promise if several processes share the rate-limit
   * counters.
   */
  #limit(call: ProxiedCall, caller: ForwardedCaller): Promise<void> | undefined {
    call.caller = caller;
    const { headers } = call.request;
    const limits = this.#services.limitRequests?.(countedOf(headers, caller, call.client.ip)) ?? null;
    if (limits instanceof Promise) return limits.then((known) => this.#forward(call, caller, known));
    this.#forward(call, caller, limits);
    return undefined;
  }

  #forward(call: ProxiedCall, caller: ForwardedCaller, limits: LimitHeaders | null): void {
    const { forward, admins } = this.#services;
    const acting = actingNamespace(call.request.headers, caller, admins);
    const found = this.#ruleOf(call, acting);
    if (found) requireAccess(acting, found.rule, { ...call, method: call.request.method! }, this.#kit.logger);
    const record = found?.rule.audit ? this.#recorderOf(call, acting, found) : undefined;
    const extra = joined(call.corsHeaders, limits);
    forward(call, acting, call.upstream.sandbox ? joined(extra, SANDBOX) : extra, record);
  }

  /** Returns the rule of a call. Reads by callers without restrictions need none. */
  #ruleOf({ request, upstream }: ProxiedCall, { access }: Caller): FoundRule | undefined {
    const method = request.method!;
    if (!access && (method === 'GET' || method === 'HEAD')) return undefined;
    return this.#rules.find(method, upstream.basePath + request.url!);
  }

  #recorderOf(call: ProxiedCall, caller: Caller, { rule, params }: FoundRule): RecordEnd {
    const { requestId, traceId, request } = call;
    const open = { caller, rule, params, path: request.url!, requestId, traceId };
    return (end) => recordCall(this.#services.audit, open, end, this.#kit.logger);
  }

  #refuse(call: ProxiedCall, thrown: unknown): void {
    const error = toPlatformError(thrown);
    if (error.status >= 500) {
      const { requestId, traceId } = call;
      const cause = error.cause ?? error;
      this.#kit.logger.error(`A proxied call failed: ${error.message}`, { requestId, traceId, error: cause });
    }
    answerError(call, error, call.corsHeaders);
  }
}

function joined(left: readonly string[] | null, right: readonly string[] | null): readonly string[] | null {
  return left && right ? [...left, ...right] : (left ?? right);
}
