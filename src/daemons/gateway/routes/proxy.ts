import type { FastifyReply, FastifyRequest, HTTPMethods } from 'fastify';
import { ANONYMOUS_HOST, type Caller } from '../../../contracts/index.ts';
import { type Http, pathOf, sendRawError } from '../../../http/index.ts';
import { toPlatformError } from '../../../kit/errors.ts';
import type { Admins } from '../domain/identity/admins.ts';
import type { Authenticator, Principal } from '../domain/identity/authenticator.ts';
import { authorizationOf } from '../domain/identity/bearer.ts';
import type { IsPublicRoute } from '../domain/public-routes.ts';
import type { LimitHeaders, LimitRequests } from '../domain/request-limits.ts';
import type { Forward } from '../proxy/forward.ts';
import type { Upstream } from '../proxy/upstreams.ts';
import { actingNamespace } from './acting-namespace.ts';
import { countedOf } from './counted.ts';
import { subjectOf } from './subject.ts';

/** TRACE would show a page what headers we add; CONNECT is no request to an upstream. */
export const PROXIED_METHODS: readonly HTTPMethods[] = [
  'GET',
  'HEAD',
  'POST',
  'PUT',
  'PATCH',
  'DELETE',
  'OPTIONS',
];

export interface ProxyRoutesServices {
  authenticator: Authenticator;
  upstreams: readonly Upstream[];
  forward: Forward;
  limitRequests: LimitRequests | null;
  admins: Admins;
  /** Null unless `gateway.publicPluginRoutes` is on. */
  isPublicRoute: IsPublicRoute | null;
}

/** Who calls a public route without a token. @spec docs/decisions.md "Public plugin routes" */
const NOBODY: Caller = { hostId: ANONYMOUS_HOST, namespaceId: 'default' };

/**
 * Everything at or below an upstream's prefixes that the gateway does not serve itself. The reply is taken from Fastify
 * before the body is read, so that bodies stream through unparsed. @spec Authentication 1: no routing without it
 */
export function proxyRoutes(http: Http, services: ProxyRoutesServices): void {
  for (const upstream of services.upstreams) {
    const onRequest = takeOver(services, upstream);
    for (const prefix of upstream.prefixes) {
      for (const url of [prefix || '/', `${prefix}/*`]) {
        const config = { accountsItself: true };
        http.route({
          method: [...PROXIED_METHODS],
          url,
          exposeHeadRoute: false,
          config,
          onRequest,
          handler: unreachable,
        });
      }
    }
  }
}

/** Route, authenticate, limit, forward: at once for a token seen before, so that the usual call waits for no promise. */
function takeOver(services: ProxyRoutesServices, upstream: Upstream) {
  const { authenticator, forward, limitRequests, admins, isPublicRoute } = services;

  /** A token that was sent counts, also where none is needed: a wrong one is 401 as everywhere. */
  function needsNoToken({ raw, method }: FastifyRequest): boolean {
    if (!isPublicRoute || upstream.name !== 'rest') return false;
    return authorizationOf(raw.rawHeaders) === undefined && isPublicRoute(method, pathOf(raw.url!));
  }
  async function authenticate(request: FastifyRequest): Promise<Principal> {
    return authenticator.authenticate(subjectOf(request));
  }
  /** A promise only where the verdict on a limit has to be asked for. */
  function proceed(request: FastifyRequest, reply: FastifyReply, caller: Caller): Promise<void> | undefined {
    request.caller = caller;
    const limits = limitRequests?.(countedOf(request, caller)) ?? null;
    if (limits instanceof Promise) return limits.then((known) => pass(request, reply, caller, known));
    pass(request, reply, caller, limits);
    return undefined;
  }
  function pass(
    request: FastifyRequest,
    reply: FastifyReply,
    caller: Caller,
    limits: LimitHeaders | null,
  ): void {
    const acting = actingNamespace(request.raw, caller, admins);
    forward(request, reply, upstream, acting, joined(request.corsHeaders, limits));
  }
  return (request: FastifyRequest, reply: FastifyReply): void => {
    reply.hijack();
    try {
      const known =
        authenticator.recall(request.raw.rawHeaders) ?? (needsNoToken(request) ? NOBODY : undefined);
      const waits = known
        ? proceed(request, reply, known)
        : authenticate(request).then((caller) => proceed(request, reply, caller));
      waits?.catch((error) => answerError(request, reply, error));
    } catch (error) {
      answerError(request, reply, error);
    }
  };
}

function answerError(request: FastifyRequest, reply: FastifyReply, thrown: unknown): void {
  const error = toPlatformError(thrown);
  if (error.status >= 500) {
    const { id: requestId, traceId } = request;
    request.server.kit.logger.error(`A proxied call failed: ${error.message}`, {
      requestId,
      traceId,
      error: error.cause ?? error,
    });
  }
  sendRawError(reply.raw, error, request.id, request.corsHeaders);
  request.server.kit.account(request, error.status);
}

function joined(left: readonly string[] | null, right: readonly string[] | null): readonly string[] | null {
  return left && right ? [...left, ...right] : (left ?? right);
}

function unreachable(): never {
  throw new Error('The proxy answers before its handler.');
}
