import { type Authenticate, createClientSide, createOriginJudge } from '../../http/index.ts';
import { PlatformError } from '../../kit/errors/errors.ts';
import { version } from '../../kit/files/paths.ts';
import type { Logger } from '../../kit/telemetry/logger.ts';
import type { Resources } from '../define-daemon.ts';
import { nativeCallRule } from './domain/access/access-rules.ts';
import { requireAccess } from './domain/access/require-access.ts';
import { actingNamespace } from './domain/identity/acting-namespace.ts';
import type { Principal } from './domain/identity/authenticator.ts';
import type { PortalCaller } from './domain/identity/portal-links.ts';
import { createMergedDescription } from './domain/merged-description.ts';
import type { PluginRouteLookup } from './domain/plugin-route-lookup.ts';
import { createPublicRoutes } from './domain/public-routes.ts';
import { countedOf, createRequestLimits, type LimitRequests } from './domain/request-limits.ts';
import { createRouteTimeouts } from './domain/route-timeouts.ts';
import type { IdentityServices } from './identity-services.ts';
import { InnerCalls } from './inner-calls.ts';
import { upstreamRequestCounter } from './metrics.ts';
import type { UpgradeHandler } from './proxy/client-upgrade.ts';
import { createForwarder } from './proxy/forward.ts';
import { SocketProxy } from './proxy/socket-proxy.ts';
import { createUpstreamClient } from './proxy/upstream/index.ts';
import { upstreamDescriptions } from './proxy/upstream-descriptions.ts';
import { createUpstreams } from './proxy/upstreams.ts';
import { subjectOf } from './routes/subject.ts';

/**
 * Builds the services that forward client calls. Also builds the services that authenticate and rate-limit client calls
 * and check their origin.
 */
export function proxyServices(
  { config, metrics, peers, keys, clock, random, logger, createLimiter }: Resources,
  { identity, routes }: { identity: IdentityServices; routes: PluginRouteLookup },
  stack: AsyncDisposableStack,
) {
  const { upstreamTimeoutMs, bodyLimitBytes, publicPluginRoutes } = config.gateway;
  const { internalSecret } = keys;
  const upstreamClient = stack.adopt(createUpstreamClient(upstreamTimeoutMs), (made) => made.close());
  const limitRequests = createRequestLimits(config, createLimiter);
  const upstreams = createUpstreams(config.gateway.upstreams, peers);
  const count = upstreamRequestCounter(metrics);
  const clientSideOf = createClientSide(config.gateway.trustedProxies);
  const innerCalls = new InnerCalls(random);
  return {
    authenticate: limited(identity, limitRequests, logger, innerCalls),
    authenticateMcp: limited(
      { ...identity, authenticator: identity.mcpAuthenticator },
      limitRequests,
      logger,
    ),
    innerCalls,
    limitRequests,
    judgeOrigin: createOriginJudge(config.gateway.cors.origins),
    isPublicRoute: publicPluginRoutes ? createPublicRoutes(routes) : null,
    upstreams,
    mergedDescription: createMergedDescription({
      sources: upstreamDescriptions(upstreams, internalSecret, publicPluginRoutes),
      version,
      clock,
      logger,
    }),
    upstreamClient,
    forward: createForwarder({
      client: upstreamClient,
      internalSecret,
      admins: identity.admins,
      bodyLimitBytes,
      timeoutFor: createRouteTimeouts(routes, { upstreamTimeoutMs, routeTimeoutMs: config.rest.timeoutMs }),
      count,
    }),
    proxySocket: new SocketProxy({
      ...{
        internalSecret,
        admins: identity.admins,
        timeoutMs: upstreamTimeoutMs,
        revocations: identity.socketCutOff,
        count,
        clock,
        clientSideOf,
      },
    }),
    clientSideOf,
    ownSockets: new Map<string, UpgradeHandler>(),
  };
}

/**
 * Returns a function that authenticates callers of the gateway's own endpoints. Rate limits and response headers are
 * the same as for proxied calls. Roles and scopes are checked for the route.
 */
function limited(
  { authenticator, admins, portalLinks }: Pick<IdentityServices, 'authenticator' | 'admins' | 'portalLinks'>,
  limitRequests: LimitRequests | null,
  logger: Logger,
  innerCalls?: InnerCalls,
): Authenticate {
  return async (request, reply) => {
    // The MCP endpoint has authenticated and counted the caller, and checked its access.
    const inner = innerCalls?.take(request.headers);
    if (inner) return inner;
    const { method, id: requestId, traceId, routeOptions } = request;
    const route = routeOptions.url ?? '';
    const rule = nativeCallRule(method, route, request.params);
    const subject = subjectOf(request);
    const portal = rule.isPortal ? await portalLinks.authenticate(subject) : undefined;
    const caller = portal ?? (await authenticator.authenticate(subject));
    refuseContainers(caller);
    const headers = (await limitRequests?.(countedOf(request.headers, caller, request.ip))) ?? [];
    for (let i = 0; i < headers.length; i += 2) reply?.header(headers[i]!, headers[i + 1]);
    const acting = actingNamespace(request.headers, caller, admins);
    requireAccess(acting, rule, { method, route, requestId, traceId }, logger);
    return acting;
  };
}

/** Rejects calls of plugin containers, which are not allowed to administer secrets, tokens and hosts. */
function refuseContainers({ kind }: Pick<Principal | PortalCaller, 'kind'>): void {
  if (kind !== 'container') return;
  throw new PlatformError(
    'FORBIDDEN',
    "A container's token is only for its plugin's platform calls; use an administrator's token.",
  );
}
