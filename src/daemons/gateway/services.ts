import { postgresUrlOf } from '../../kit/config/store-url.ts';
import { instanceId } from '../../kit/files/instance-id.ts';
import { createSeal } from '../../kit/security/keys.ts';
import { mergeMetrics } from '../../kit/telemetry/metrics.ts';
import { openGatewayStore } from '../../store/open-store.ts';
import type { GatewayStore } from '../../store/ports/index.ts';
import type { Resources } from '../define-daemon.ts';
import { ChangeFeed } from '../membership/change-feed.ts';
import { joinMembers } from '../membership/join-members.ts';
import type { Membership } from '../membership/membership.ts';
import { PluginRuntime } from '../plugin-runtime/runtime.ts';
import { openSharedPlugins } from '../plugin-runtime/shared/open-shared-plugins.ts';
import { createDatabaseMetrics, createPoolMetrics } from '../postgres-metrics.ts';
import { alertServices } from './alert-services.ts';
import { connectionServices } from './connection-services.ts';
import { EmittedMessages } from './domain/event-types/emitted-messages.ts';
import { EventTypes } from './domain/event-types/event-types.ts';
import { createDispatch } from './domain/hosts/dispatch.ts';
import {
  type ExecutionClaims,
  LocalExecutionClaims,
  StoredExecutionClaims,
} from './domain/hosts/execution-claims.ts';
import { startHousekeeping } from './domain/housekeeping.ts';
import { keyFingerprints, requireSharedKeys } from './domain/identity/shared-keys.ts';
import { signingKeys } from './domain/identity/signing-secrets.ts';
import { staticTokensRevision } from './domain/identity/static-tokens.ts';
import { createPluginRouteLookup } from './domain/plugin-route-lookup.ts';
import { reportMissingSecrets } from './domain/vault/config-secrets.ts';
import { Vault } from './domain/vault/vault.ts';
import { inboxDegradations } from './domain/webhooks/dispatch/inbox-degradations.ts';
import { identityServices } from './identity-services.ts';
import { mcpServices } from './mcp-services.ts';
import { messageServices } from './message-services.ts';
import { createLoadMetrics } from './metrics.ts';
import { NodeMembers } from './node-members.ts';
import { OtherProcesses } from './other-processes.ts';
import { startingUpstreams } from './proxy/upstreams.ts';
import { proxyServices } from './proxy-services.ts';
import { queueServices } from './queue-services.ts';
import { remoteExecution } from './remote-execution.ts';
import { lockStore } from './store-lock.ts';
import { traceServices } from './trace-services.ts';
import { webhookServices } from './webhook-services.ts';
import { openWebhookState } from './webhook-state.ts';

export type GatewayServices = Awaited<ReturnType<typeof gatewayServices>>;

/**
 * Opens the gateway's store and builds its services. An SQLite store is locked, so that no other gateway can open the
 * store.
 */
export async function gatewayServices(resources: Resources, stack: AsyncDisposableStack) {
  const { config, profile, keys, logger, metrics } = resources;
  // The secrets are checked first. In production, an insecure secret must stop the startup before any resource is open.
  const signing = signingKeys(keys, profile, logger);
  const store = await openStore(resources, stack);
  const { inbox } = store;
  const { membership, elsewhere } = await joinStore(resources, store, stack);
  const feed = await openFeed(resources, { store, membership }, stack);
  const identity = await identityServices(resources, { store, signing, feed, elsewhere });
  const state = await openWebhookState(resources, { store, feed, audit: identity.audit }, stack);
  const { createRemoteBackends, ...remote } = await remoteExecution(
    resources,
    { store, identity, membership, feed },
    stack,
  );
  const vault = openVault(resources, store);
  await reportMissingSecrets(config, { vault, logger });
  const connections = connectionServices(resources, { store, vault, audit: identity.audit }, stack);
  const shared = await openSharedPlugins('gateway', resources, stack);
  const plugins = stack.adopt(
    await PluginRuntime.open(resources, {
      createRemoteBackends,
      onServiceCall: (pluginId, service) => state.use.noteCall(pluginId, service),
      webhooks: { list: (scope, pluginId) => state.listing.list(scope.tenantId, pluginId) },
      secrets: vault.access,
      connections: connections.connectionTokens.access,
    }),
    (opened) => opened.close(),
  );
  const eventTypes = new EventTypes({ plugins, clock: resources.clock });
  const otherProcesses = shareMetrics(resources, membership);
  const queues = await queueServices(resources, { store, feed }, stack);
  const webhooks = await webhookServices(
    resources,
    { store, queues: queues.queues, membership, plugins, shared, state, otherProcesses },
    stack,
  );
  const outgoing = await messageServices(resources, { store, feed, membership, eventTypes }, stack);
  createPoolMetrics(metrics, store.monitor);
  createDatabaseMetrics(metrics, store.monitor);
  createLoadMetrics(metrics, {
    deliveries: () => webhooks.dispatcher.load,
    inboxBytes: () => inbox.waitingBytes,
    hosts: () => remote.hostSessions.connected,
  });
  const routes = createPluginRouteLookup(plugins);
  const claims = executionClaims(resources, { store, membership });
  // The sweep runs before the first call, because containers of a killed gateway must lose their access.
  await membership.sweep();
  return {
    store,
    membership,
    feed,
    vault,
    ...identity,
    ...proxyServices(resources, { identity, routes }, stack),
    ...webhooks,
    ...queues,
    ...outgoing,
    ...alertServices(
      resources,
      {
        ...{ store, membership, vault, admins: identity.admins, health: connections.connectionHealth },
        backlog: () => webhooks.dispatcher.load.waiting,
      },
      stack,
    ),
    ...connections,
    ...traceServices(resources, store),
    ...remote,
    ...mcpServices(resources, plugins),
    plugins,
    eventTypes,
    emittedMessages: new EmittedMessages({ plugins, publisher: outgoing.publisher }),
    platformServices: plugins.services,
    dispatch: createDispatch({ plugins, claims }),
    execution: config.execution,
    internalSecret: keys.internalSecret,
    nodeMembers: nodeMembersOf(resources, store),
    dataDir: resources.dataDir,
    async withdraw() {
      webhooks.requestedAttempts.leave();
      await membership.withdraw();
    },
    // With `whenStoreDown: spill`, the gateway accepts deliveries without its store. The readiness probe then omits the
    // store, so that load balancers keep the gateway in service.
    ...(config.inbox.whenStoreDown === 'spill' ? {} : { probeStore: () => store.probe() }),
    degradations: () => inboxDegradations(inbox),
    starting: () => startingUpstreams(resources),
  };
}

/**
 * Registers this process as a member of the store. Throws CONFLICT if another node uses the store with different keys.
 */
async function joinStore(
  resources: Resources,
  { members, cache }: GatewayStore,
  stack: AsyncDisposableStack,
): Promise<{ membership: Membership; elsewhere: (string | null)[] }> {
  const { config, keys: secrets, sharesStore } = resources;
  const keys = keyFingerprints(secrets);
  const release = staticTokensRevision(config.gateway.staticTokens);
  const membership = await joinMembers(resources, members, { kind: 'gateway', release, keys }, stack);
  // The file lock excludes other members, so the keys can change at a restart without a check against other members.
  if (!sharesStore) return { membership, elsewhere: [] };
  const others = await membership.others();
  await requireSharedKeys(keys, { cache, others });
  return { membership, elsewhere: others.map((other) => other.release) };
}

/** Opens the change feed. Data must be loaded after the feed is open, so that no change is missed. */
async function openFeed(
  { config, clock, logger, sharesStore }: Resources,
  { store, membership }: { store: GatewayStore; membership: Membership },
  stack: AsyncDisposableStack,
): Promise<ChangeFeed> {
  const sharedAs = sharesStore ? membership.fence : undefined;
  const { staleMs } = config.auth;
  return stack.adopt(
    await ChangeFeed.open({ store: store.feed, sharedAs, staleMs, clock, logger }),
    (opened) => opened.close(),
  );
}

function openVault({ keys, clock, logger }: Resources, { vault }: GatewayStore): Vault {
  return new Vault({
    store: vault,
    seal: createSeal(keys.masterKey, keys.previousMasterKeys),
    clock,
    logger,
  });
}

/** Opens the store, and locks an SQLite store. Only the first process of a node recovers and prunes the store. */
async function openStore(resources: Resources, stack: AsyncDisposableStack): Promise<GatewayStore> {
  const { config, env, dataDir, clock, logger, portShare, sharesStore = false, hasOtherNodes } = resources;
  const owns = portShare === undefined || portShare.number === 1;
  if (!hasOtherNodes) stack.adopt(await lockStore(dataDir, portShare), (lock) => lock.release());
  const store = stack.adopt(
    await openGatewayStore({
      ...{ dataDir, clock, logger },
      postgresUrl: postgresUrlOf(config.store, env),
      spills: config.inbox.whenStoreDown === 'spill',
      sqlite: {
        members: sharesStore ? 'several' : 'one',
        shared: sharesStore,
        recovers: owns,
      },
    }),
    (opened) => opened.close(),
  );
  if (owns)
    stack.adopt(startHousekeeping({ store, ...config.retention, clock, logger }), (stopHousekeeping) =>
      stopHousekeeping(),
    );
  return store;
}

/** Returns the access to other services of this node for calls of other nodes. Undefined without other nodes. */
function nodeMembersOf(
  { dataDir, env, random, keys, hasOtherNodes }: Resources,
  { members }: GatewayStore,
): NodeMembers | undefined {
  if (!hasOtherNodes) return undefined;
  const node = instanceId(dataDir, env, random);
  return new NodeMembers({ node, members, internalSecret: keys.internalSecret });
}

function executionClaims(
  { sharesStore, logger }: Resources,
  { store: { cache, members }, membership }: { store: GatewayStore; membership: Membership },
): ExecutionClaims {
  if (!sharesStore) return new LocalExecutionClaims();
  const claims = new StoredExecutionClaims({ cache, members, fence: membership, logger });
  membership.onEnded(() => claims.sweep());
  return claims;
}

/**
 * Makes `/metrics` of each process report all processes that share the port. Returns undefined if the node has one
 * process.
 */
function shareMetrics(
  { portShare, metrics, dataDir, env, random, keys, logger }: Resources,
  membership: Membership,
): OtherProcesses | undefined {
  if (!portShare) return undefined;
  const node = instanceId(dataDir, env, random);
  const others = new OtherProcesses({ node, membership, internalSecret: keys.internalSecret, logger });
  metrics.renderBy(async () => {
    const [own, theirs] = await Promise.all([metrics.snapshot(), others.metrics()]);
    return mergeMetrics([own, ...theirs]);
  });
  return others;
}
