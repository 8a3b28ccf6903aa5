import { type Authenticate, createClientSide, createOriginJudge } from '../../http/index.ts';
import { PlatformError } from '../../kit/errors/errors.ts';
import { version } from '../../kit/files/paths.ts';
import type { GatewayStore } from '../../store/ports/index.ts';
import { type OwnerLock, sqliteGatewayStore } from '../../store/sqlite/index.ts';
import type { Resources } from '../define-daemon.ts';
import type { ProcessGroup } from '../group/process-group.ts';
import { createOAuthVerifier } from '../oauth/verifier.ts';
import type { CreateRemoteBackends } from '../plugin-runtime/backends.ts';
import { createPluginRuntime, type PluginRuntime } from '../plugin-runtime/runtime.ts';
import { createEnrolments } from './domain/hosts/enrolments.ts';
import { createHosts } from './domain/hosts/hosts.ts';
import { clearStaleSessions } from './domain/hosts/sessions.ts';
import { startHousekeeping } from './domain/housekeeping.ts';
import { actingNamespace } from './domain/identity/acting-namespace.ts';
import { type Admins, createAdmins } from './domain/identity/admins.ts';
import { createAttemptLimits } from './domain/identity/attempt-limits.ts';
import { type Authenticator, createAuthenticator, type Principal } from './domain/identity/authenticator.ts';
import { createClientRegistry } from './domain/identity/client-registry.ts';
import { createClients } from './domain/identity/clients.ts';
import { createJwts } from './domain/identity/jwt.ts';
import { createMintedTokens } from './domain/identity/minted-tokens.ts';
import { createRevocations } from './domain/identity/revocations.ts';
import { signingKeys } from './domain/identity/signing-secrets.ts';
import { storedStaticTokens, syncStaticTokens } from './domain/identity/static-tokens.ts';
import { createTokenExchange } from './domain/identity/token-exchange.ts';
import { createMergedDescription } from './domain/merged-description.ts';
import { createPluginRouteLookup, type PluginRouteLookup } from './domain/plugin-route-lookup.ts';
import { createPublicRoutes } from './domain/public-routes.ts';
import { countedOf, createRequestLimits, type LimitRequests } from './domain/request-limits.ts';
import { createRouteTimeouts } from './domain/route-timeouts.ts';
import type { WebhookDispatcher } from './domain/webhooks/dispatch/dispatcher.ts';
import { inboxDegradations } from './domain/webhooks/dispatch/inbox-degradations.ts';
import { ServiceUse } from './domain/webhooks/dispatch/service-use.ts';
import { createLoadMetrics, upstreamRequestCounter } from './metrics.ts';
import type { UpgradeHandler } from './proxy/client-upgrade.ts';
import { createForwarder } from './proxy/forward.ts';
import { createSocketProxy } from './proxy/socket-proxy.ts';
import { createUpstreamClient } from './proxy/upstream/index.ts';
import { upstreamDescriptions } from './proxy/upstream-descriptions.ts';
import { createUpstreams } from './proxy/upstreams.ts';
import { createRemoteExecution, type RemoteExecution, remoteServices } from './remote-execution.ts';
import { answerRelayed, relayedBackends } from './remote-relay.ts';
import { subjectOf } from './routes/subject.ts';
import { lockStore } from './store-lock.ts';
import { webhookServices } from './webhook-services.ts';

export type GatewayServices = Awaited<ReturnType<typeof gatewayServices>>;

/** Opens `svc.db`, which the gateway owns exclusively, and builds the gateway's parts. */
export async function gatewayServices(resources: Resources) {
  const { dataDir, profile, keys, clock, logger, group } = resources;
  const owns = group.role !== 'sibling';
  // First, because it may refuse the start while nothing is open yet.
  const signing = signingKeys(keys, profile, logger);
  const lock = await lockStore(dataDir, group);
  let store: GatewayStore | undefined;
  let plugins: PluginRuntime | undefined;
  const remote = createRemoteExecution(resources);
  try {
    const use = new ServiceUse();
    plugins = await createPluginRuntime(resources, {
      onServiceCall: (pluginId, service) => use.noteCall(pluginId, service),
      createRemoteBackends: remoteBackendsOf(group, remote),
      webhooks: { list: (scope, pluginId) => webhooks.webhookAdmin.list(scope.tenantId, pluginId) },
    });
    store = await sqliteGatewayStore({
      dataDir,
      clock,
      logger,
      shared: group.role !== 'alone',
      recovers: owns,
    });
    const webhooks = await webhookServices(resources, store, plugins, use);
    const stopHousekeeping = owns
      ? startHousekeeping({ store, ...resources.config.retention, clock, logger })
      : async () => {};
    createLoadMetrics(resources.metrics, {
      deliveries: () => webhooks.dispatcher.load,
      inboxBytes: () => webhooks.tailedInbox.waitingBytes,
      hosts: () => remote.sessions.connected,
    });
    if (owns) await clearStaleSessions(store.hosts, clock.now());
    const routes = createPluginRouteLookup(plugins);
    const parts = await build(resources, store, signing, routes);
    const { inbox } = store;
    const { publicPluginRoutes } = resources.config.gateway;
    return {
      group,
      ...parts,
      isPublicRoute: publicPluginRoutes ? createPublicRoutes(routes) : null,
      ...webhooks,
      degradations: () => inboxDegradations(inbox),
      ...(await remoteServices(resources, remote, { ...parts, store, plugins })),
      close: closer({ store, plugins, remote, webhooks, stopHousekeeping, lock }),
    };
  } catch (error) {
    await plugins?.close();
    await store?.close();
    lock.release();
    throw error;
  }
}

/** Remote backends exist only in the primary; siblings use them through it. */
function remoteBackendsOf(group: ProcessGroup, remote: RemoteExecution): CreateRemoteBackends {
  if (group.role === 'sibling') return () => relayedBackends(group);
  return (services, code) => {
    const backends = remote.create(services, code);
    if (group.role === 'primary') answerRelayed(group, backends);
    return backends;
  };
}

async function build(
  resources: Resources,
  store: GatewayStore,
  keys: ReturnType<typeof signingKeys>,
  routes: PluginRouteLookup,
) {
  const identity = await buildIdentity(resources, store, keys);
  const { config, logger, metrics, peers } = resources;
  const { upstreams, upstreamTimeoutMs, bodyLimitBytes } = config.gateway;
  const upstreamClient = createUpstreamClient(upstreamTimeoutMs);
  const limitRequests = createRequestLimits(config, resources.createLimiter);
  const { internalSecret } = resources.keys;
  const known = createUpstreams(upstreams, peers);
  const count = upstreamRequestCounter(metrics);
  const { revocations } = identity;
  const clientSideOf = createClientSide(config.gateway.trustedProxies);
  const forward = createForwarder({
    client: upstreamClient,
    internalSecret,
    bodyLimitBytes,
    timeoutFor: createRouteTimeouts(routes, { upstreamTimeoutMs, routeTimeoutMs: config.rest.timeoutMs }),
    count,
  });
  return {
    store,
    ...identity,
    authenticate: limited(identity, limitRequests),
    limitRequests,
    judgeOrigin: createOriginJudge(config.gateway.cors.origins),
    upstreams: known,
    mergedDescription: createMergedDescription({
      sources: upstreamDescriptions(known, internalSecret, config.gateway.publicPluginRoutes),
      version,
      clock: resources.clock,
      logger,
    }),
    upstreamClient,
    forward,
    proxySocket: createSocketProxy({
      internalSecret,
      timeoutMs: upstreamTimeoutMs,
      revocations,
      count,
      clock: resources.clock,
      clientSideOf,
    }),
    clientSideOf,
    ownSockets: new Map<string, UpgradeHandler>(),
  };
}

/** Identity: tokens, clients, hosts and revocations. */
async function buildIdentity(
  resources: Resources,
  store: GatewayStore,
  keys: ReturnType<typeof signingKeys>,
) {
  const { config, clock, random, logger, operator, group } = resources;
  const owns = group.role !== 'sibling';
  const { staticTokens: entries, admins: adminHosts } = config.gateway;
  const staticTokens = owns
    ? await syncStaticTokens(store.cache, entries, logger)
    : storedStaticTokens(store.cache);
  const revocations = await createRevocations({ store: store.revocations, clock, logger, group });
  const jwts = createJwts({ keys, clock, random });
  const registry = createClientRegistry({ store: store.clients, clock, random });
  if (operator && owns) await registry.adopt({ ...operator, name: 'operator' });
  const { oauth } = config.gateway;
  const verifyOAuth = oauth ? createOAuthVerifier(oauth, { clock, logger }) : undefined;
  const authenticator = createAuthenticator({ staticTokens, jwts, revocations, verifyOAuth, clock, logger });
  revocations.onRevoked(authenticator.clearCache);
  const admins = createAdmins(adminHosts);
  const { refreshTokens } = store;
  return {
    jwts,
    revocations,
    admins,
    authenticator,
    attempts: createAttemptLimits(resources.createLimiter),
    exchange: createTokenExchange({
      clients: registry,
      refreshTokens,
      jwts,
      revocations,
      clock,
      random,
      logger,
    }),
    enrolments: createEnrolments({ cache: store.cache, clock, random }),
    hosts: createHosts({ store: store.hosts, clients: registry, revocations, admins, clock, random, logger }),
    clients: createClients({
      store: store.clients,
      registry,
      revocations,
      admins,
      random,
      logger,
      operator,
    }),
    mintedTokens: createMintedTokens({ store: store.mintedTokens, jwts, revocations, admins, clock, logger }),
  };
}

interface Closing {
  store: GatewayStore;
  plugins: PluginRuntime;
  remote: RemoteExecution;
  webhooks: { dispatcher: WebhookDispatcher; stopProbes: () => void };
  stopHousekeeping: () => Promise<void>;
  lock: OwnerLock;
}

/**
 * A plugin's container may call the services behind the gateway, but not administer secrets, tokens and
 * hosts.
 */
function refuseContainers({ kind }: Principal): void {
  if (kind !== 'container') return;
  throw new PlatformError(
    'FORBIDDEN',
    "A container's token is only for its plugin's platform calls; use an administrator's token.",
  );
}

/**
 * Authenticates callers of the gateway's own endpoints, with the same rate limits and headers as proxied
 * calls.
 */
function limited(
  { authenticator, admins }: { authenticator: Authenticator; admins: Admins },
  limitRequests: LimitRequests | null,
): Authenticate {
  return async (request, reply) => {
    const caller = await authenticator.authenticate(subjectOf(request));
    refuseContainers(caller);
    const told = (await limitRequests?.(countedOf(request.headers, caller, request.ip))) ?? [];
    for (let i = 0; i < told.length; i += 2) reply?.header(told[i]!, told[i + 1]);
    return actingNamespace(request.headers, caller, admins);
  };
}

/** Stops work first, then closes what it uses. */
function closer({ store, plugins, remote, webhooks, stopHousekeeping, lock }: Closing) {
  return async (): Promise<void> => {
    webhooks.stopProbes();
    await webhooks.dispatcher.close();
    await plugins.close();
    remote.close();
    await stopHousekeeping();
    await store.close();
    lock.release();
  };
}
