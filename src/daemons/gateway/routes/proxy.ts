import type { FastifyReply, FastifyRequest } from 'fastify';
import { ANONYMOUS_HOST, type Caller } from '../../../contracts/index.ts';
import { type ClientSideOf, type Http, pathOf } from '../../../http/index.ts';
import type { Authenticator } from '../domain/identity/authenticator.ts';
import { authorizationOf } from '../domain/identity/bearer.ts';
import type { IsPublicRoute } from '../domain/public-routes.ts';
import { PROXIED_METHODS } from '../proxy/proxied-call.ts';
import type { Upstream } from '../proxy/upstreams.ts';
import { takeCallsEarly } from './proxy-shortcut.ts';
import { createProceed, type Proceed, type ProxyStepsServices, refuse } from './proxy-steps.ts';
import { subjectOf } from './subject.ts';

export interface ProxyRoutesServices extends ProxyStepsServices {
  authenticator: Authenticator;
  upstreams: readonly Upstream[];
  /** Null unless `gateway.publicPluginRoutes` is on. */
  isPublicRoute: IsPublicRoute | null;
  clientSideOf: ClientSideOf;
}

/** Who calls a public route without a token. @spec docs/gateway.md "Routes without a token" */
const NOBODY: Caller = { hostId: ANONYMOUS_HOST, namespaceId: 'default' };

/**
 * Everything at or below an upstream's prefixes that the gateway does not serve itself. The reply is taken from Fastify
 * before the body is read, so that bodies stream through unparsed. @spec Authentication 1: no routing without it
 */
export function proxyRoutes(http: Http, services: ProxyRoutesServices): void {
  const proceed = createProceed(services);
  for (const upstream of services.upstreams) {
    const onRequest = takeOver(services, upstream, proceed);
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
  takeCallsEarly(http, services, proceed);
}

/** Route, authenticate, then limit and forward. */
function takeOver(
  { authenticator, isPublicRoute, clientSideOf }: ProxyRoutesServices,
  upstream: Upstream,
  proceed: Proceed,
) {
  /** A token that was sent counts, also where none is needed: a wrong one is 401 as everywhere. */
  function needsNoToken({ raw, method }: FastifyRequest): boolean {
    if (!isPublicRoute || upstream.name !== 'rest') return false;
    return authorizationOf(raw.rawHeaders) === undefined && isPublicRoute(method, pathOf(raw.url!));
  }
  async function callerOf(request: FastifyRequest): Promise<Caller> {
    return needsNoToken(request) ? NOBODY : authenticator.authenticate(subjectOf(request));
  }
  return (request: FastifyRequest, reply: FastifyReply): void => {
    reply.hijack();
    const { id: requestId, traceId, spanId, startedAt, corsHeaders } = request;
    const call = {
      ...{ requestId, traceId, spanId, startedAt, corsHeaders, upstream },
      kit: request.server.kit,
      request: request.raw,
      response: reply.raw,
      route: request.routeOptions.url!,
      client: clientSideOf(request.raw),
      caller: null,
    };
    callerOf(request).then(
      (caller) => proceed(call, caller),
      (error) => refuse(call, error),
    );
  };
}

function unreachable(): never {
  throw new Error('The proxy answers before its handler.');
}
