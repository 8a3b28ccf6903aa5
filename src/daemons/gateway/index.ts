import type { FastifyRequest } from 'fastify';
import { allowOrigins, type Http } from '../../http/index.ts';
import type { Logger } from '../../kit/telemetry/logger.ts';
import { defineDaemon } from '../define-daemon.ts';
import { memberUrl } from '../membership/member-url.ts';
import { rereadRoutes } from '../plugin-runtime/reread.ts';
import { gatewayEdge } from './edge/edge.ts';
import { accessRoutes } from './routes/access.ts';
import { alertRoutes } from './routes/alerts.ts';
import { auditHook, auditRoutes } from './routes/audit.ts';
import { authRoutes } from './routes/auth.ts';
import { clientRoutes } from './routes/clients.ts';
import { connectionPagesRoutes } from './routes/connection-pages.ts';
import { connectionRoutes } from './routes/connections.ts';
import { deliveryAttemptsRoutes } from './routes/delivery-attempts.ts';
import { docsRoutes } from './routes/docs.ts';
import { endpointRoutes } from './routes/endpoints.ts';
import { eventTypeRoutes } from './routes/event-types.ts';
import { gatewayProcessesRoutes } from './routes/gateway-processes.ts';
import { hostSocketRoutes } from './routes/host-socket.ts';
import { hostRoutes } from './routes/hosts.ts';
import { internalDispatchRoutes } from './routes/internal-dispatch.ts';
import { mcpRoutes } from './routes/mcp.ts';
import { memberCallsRoutes } from './routes/member-calls.ts';
import { messageRoutes } from './routes/messages.ts';
import { nativeMethodRoutes } from './routes/native-methods.ts';
import { nodeStatusRoutes } from './routes/node-status.ts';
import { pluginPackageRoutes } from './routes/plugin-package.ts';
import { pluginWebhookRoutes } from './routes/plugin-webhooks.ts';
import { portalRoutes } from './routes/portal.ts';
import { queueRoutes } from './routes/queues.ts';
import { secretRoutes } from './routes/secrets.ts';
import { sourceRoutes } from './routes/sources.ts';
import { studioRoutes } from './routes/studio.ts';
import { studioOidcRoutes } from './routes/studio-oidc.ts';
import { studioSessionRoutes } from './routes/studio-session.ts';
import { tokenRoutes } from './routes/tokens.ts';
import { tracesRoutes } from './routes/traces.ts';
import { webhookAdminRoutes } from './routes/webhook-admin.ts';
import { webhookDeliveriesRoutes } from './routes/webhook-deliveries.ts';
import { webhookStreamRoutes } from './routes/webhook-stream.ts';
import { type GatewayServices, gatewayServices } from './services.ts';

/** The gateway service, the single entry point for clients. @spec What the service does */
export const gateway = defineDaemon({
  name: 'gateway',
  defaultPort: 4000,
  services: gatewayServices,
  listener: gatewayEdge,
  routes: [
    corsRules,
    auditHook,
    authRoutes,
    hostRoutes,
    hostSocketRoutes,
    containerSocketRoutes,
    gatewayProcessesRoutes,
    internalDispatchRoutes,
    deliveryAttemptsRoutes,
    memberCallsRoutes,
    pluginPackageRoutes,
    pluginWebhookRoutes,
    rereadRoutes,
    accessRoutes,
    auditRoutes,
    clientRoutes,
    tokenRoutes,
    tracesRoutes,
    secretRoutes,
    sourceRoutes,
    connectionRoutes,
    connectionPagesRoutes,
    studioRoutes,
    studioSessionRoutes,
    studioOidcRoutes,
    webhookAdminRoutes,
    webhookDeliveriesRoutes,
    webhookStreamRoutes,
    queueRoutes,
    endpointRoutes,
    messageRoutes,
    alertRoutes,
    eventTypeRoutes,
    portalRoutes,
    mcpRoutes,
    docsRoutes,
    nodeStatusRoutes,
    nativeMethodRoutes,
  ],
  /**
   * Runs deliveries that an earlier process accepted. Called once the other services have the address of this gateway.
   */
  ready({ dispatcher, messageLeader, membership, alertLoop }, resources) {
    const { config, portShare, logger } = resources;
    if (!portShare) warnIfAlone(config.gateway.processes, logger);
    membership.announce(memberUrl('gateway', resources));
    messageLeader.start();
    alertLoop.start();
    return dispatcher.runBacklog();
  },
  standard: { guardMetrics },
  trustedProxies: (config) => config.gateway.trustedProxies,
  bodyLimitBytes: (config) => config.gateway.bodyLimitBytes,
});

/** Warns that a single process runs although several are configured. */
function warnIfAlone(processes: number, logger: Logger): void {
  if (processes === 1) return;
  logger.diagnostic({
    domain: 'gateway',
    event: 'gateway.single_process',
    level: 'warn',
    reasonCode: 'SINGLE_PROCESS',
    message: `gateway.processes is ${processes}, but only Linux can share a port between processes: the gateway runs as a single process.`,
    outcome: 'degraded',
  });
}

function corsRules(http: Http, { judgeOrigin }: Pick<GatewayServices, 'judgeOrigin'>): void {
  if (judgeOrigin) allowOrigins(http, judgeOrigin);
}

function containerSocketRoutes(
  { server }: Http,
  { containerSockets }: Pick<GatewayServices, 'containerSockets'>,
): void {
  containerSockets.forwardTo(server);
}

/** Matches the names of headers that proxies add, such as `X-Forwarded-For`. */
const PROXY_HEADER =
  /^(?:forwarded|via|x-forwarded(?:-.*)?|x-original-.*|x-real-ip|x-client-ip|x-cluster-client-ip|x-proxyuser-ip|x-envoy-.*|true-client-ip|client-ip|cf-.*|fastly-client-ip|fly-client-ip|x-appengine-.*|x-azure-.*|x-amzn-.*|x-arr-.*|x-nginx-proxy|x-varnish)$/;

/**
 * Allows metrics requests only from the loopback interface or with a token. Requests with proxy headers need a token,
 * because a local proxy also connects from loopback. @spec docs/security.md "Boundaries"
 */
async function guardMetrics(request: FastifyRequest): Promise<void> {
  const isForwarded = Object.keys(request.headers).some((name) => PROXY_HEADER.test(name));
  if (isLoopback(request.socket.remoteAddress) && !isForwarded) return;
  await request.server.kit.authenticate(request);
}

function isLoopback(address: string | undefined): boolean {
  return address !== undefined && (address === '::1' || /^(?:::ffff:)?127\./.test(address));
}
