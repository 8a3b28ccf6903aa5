import { join } from 'node:path';
import type { Authenticate } from '../../http/index.ts';
import { seconds } from '../../kit/duration.ts';
import { PlatformError } from '../../kit/errors.ts';
import type { Logger } from '../../kit/logger.ts';
import { version } from '../../kit/paths.ts';
import type { GatewayStore } from '../../store/ports/index.ts';
import { acquireOwnerLock, sqliteGatewayStore } from '../../store/sqlite/index.ts';
import type { Resources } from '../define-daemon.ts';
import { createPluginRuntime, type PluginRuntime } from '../plugin-runtime.ts';
import { createAdmins } from './domain/admins.ts';
import { createAttemptLimits } from './domain/attempt-limits.ts';
import { type Authenticator, createAuthenticator, type Principal } from './domain/authenticator.ts';
import { createClientRegistry } from './domain/client-registry.ts';
import { createClients } from './domain/clients.ts';
import { createEnrolments } from './domain/enrolments.ts';
import { forgetFormerSessions } from './domain/host-sessions.ts';
import { createHosts } from './domain/hosts.ts';
import { startHousekeeping } from './domain/housekeeping.ts';
import { createJwts } from './domain/jwt.ts';
import { createMergedDescription } from './domain/merged-description.ts';
import { createMintedTokens } from './domain/minted-tokens.ts';
import { createRequestLimits, type LimitRequests } from './domain/request-limits.ts';
import { createRevocations } from './domain/revocations.ts';
import { signingKeys } from './domain/signing-secrets.ts';
import { syncStaticTokens } from './domain/static-tokens.ts';
import { createTokenExchange } from './domain/token-exchange.ts';
import type { WebhookDispatcher } from './domain/webhook-dispatcher.ts';
import { createElsewhere, type Elsewhere, elsewhereServices } from './elsewhere.ts';
import { createLoadMetrics, upstreamRequestCounter } from './metrics.ts';
import { createForwarder } from './proxy/forward.ts';
import { createLeanClient } from './proxy/lean-client.ts';
import { createSocketProxy } from './proxy/socket-proxy.ts';
import { createUndiciClient } from './proxy/undici-client.ts';
import { createUpstreamClient } from './proxy/upstream-client.ts';
import { upstreamDescriptions } from './proxy/upstream-descriptions.ts';
import { createUpstreams } from './proxy/upstreams.ts';
import { countedOf } from './routes/counted.ts';
import type { UpgradeHandler } from './routes/sockets.ts';
import { subjectOf } from './routes/subject.ts';
import { webhookServices } from './webhook-services.ts';

/** A gateway that is restarted finds its predecessor still writing its last answers. */
const LOCK_WAIT_MS = seconds(5);

export type GatewayServices = Awaited<ReturnType<typeof gatewayServices>>;

/** Opens `svc.db`, of which the gateway is the only owner, and builds the gateway's parts on it. */
export async function gatewayServices(resources: Resources) {
  const { dataDir, profile, keys, clock, logger } = resources;
  warnOfProcesses(resources.config.gateway.processes, logger);
  // First, because it refuses a start: nothing is open yet.
  const signing = signingKeys(keys, profile, logger);
  const lock = await acquireOwnerLock({
    file: join(dataDir, 'svc.db'),
    waitMs: LOCK_WAIT_MS,
    label: 'gateway',
  });
  let store: GatewayStore | undefined;
  let plugins: PluginRuntime | undefined;
  const elsewhere = createElsewhere(resources);
  try {
    plugins = await createPluginRuntime(resources, elsewhere.create);
    store = await sqliteGatewayStore({ dataDir, clock, logger });
    const webhooks = await webhookServices(resources, store, plugins);
    const stopHousekeeping = startHousekeeping({
      store,
      ...resources.config.retention,
      clock,
      logger,
    });
    createLoadMetrics(resources.metrics, {
      deliveries: () => webhooks.dispatcher.load,
      hosts: () => elsewhere.sessions.connected,
    });
    await forgetFormerSessions(store.hosts, clock.now());
    const parts = await build(resources, store, signing);
    return {
      ...parts,
      ...webhooks,
      ...elsewhereServices(resources, elsewhere, { ...parts, store, plugins }),
      close: closer({ store, plugins, elsewhere, dispatcher: webhooks.dispatcher, stopHousekeeping, lock }),
    };
  } catch (error) {
    await plugins?.close();
    await store?.close();
    lock.release();
    throw error;
  }
}

/** @spec docs/decisions.md "Gateway processes" */
function warnOfProcesses(processes: number, logger: Logger): void {
  if (processes === 1) return;
  logger.diagnostic({
    domain: 'gateway',
    event: 'gateway.single_process',
    level: 'warn',
    reasonCode: 'SINGLE_PROCESS',
    message: `gateway.processes is ${processes}, but this version of the gateway runs in one process.`,
    outcome: 'degraded',
  });
}

async function build(resources: Resources, store: GatewayStore, keys: ReturnType<typeof signingKeys>) {
  const identity = await buildIdentity(resources, store, keys);
  const { config, logger, metrics, peers } = resources;
  const { upstreams, upstreamTimeoutMs, bodyLimitBytes } = config.gateway;
  const timeouts = { timeoutMs: upstreamTimeoutMs };
  const upstreamClient = createUpstreamClient(createLeanClient(timeouts), createUndiciClient(timeouts));
  const limitRequests = createRequestLimits(config, resources.clock);
  const { internalSecret } = resources.keys;
  const known = createUpstreams(upstreams, peers);
  const count = upstreamRequestCounter(metrics);
  const { revocations } = identity;
  const forward = createForwarder({
    client: upstreamClient,
    internalSecret,
    bodyLimitBytes,
    count,
  });
  return {
    store,
    ...identity,
    authenticate: limited(identity.authenticator, limitRequests),
    limitRequests,
    corsOrigins: config.gateway.cors.origins,
    upstreams: known,
    mergedDescription: createMergedDescription({
      sources: upstreamDescriptions(known, internalSecret),
      version,
      clock: resources.clock,
      logger,
    }),
    upstreamClient,
    forward,
    proxySocket: createSocketProxy({ internalSecret, timeoutMs: upstreamTimeoutMs, revocations, count }),
    ownSockets: new Map<string, UpgradeHandler>(),
  };
}

/** Who may call: tokens, clients, hosts, and what was revoked of them. */
async function buildIdentity(
  resources: Resources,
  store: GatewayStore,
  keys: ReturnType<typeof signingKeys>,
) {
  const { config, clock, random, logger, operator } = resources;
  const { staticTokens: entries, admins: adminHosts } = config.gateway;
  const staticTokens = await syncStaticTokens(store.cache, entries, logger);
  const revocations = await createRevocations({ store: store.revocations, clock, logger, shared: false });
  const jwts = createJwts({ keys, clock, random });
  const registry = createClientRegistry({ store: store.clients, clock, random });
  if (operator) await registry.adopt({ ...operator, name: 'operator' });
  const authenticator = createAuthenticator({ staticTokens, jwts, revocations, clock, logger });
  revocations.onRevoked(authenticator.forget);
  const admins = createAdmins(adminHosts);
  const operatorClientId = operator?.clientId ?? null;
  const { refreshTokens } = store;
  return {
    jwts,
    revocations,
    admins,
    authenticator,
    attempts: createAttemptLimits(clock),
    exchange: createTokenExchange({ clients: registry, refreshTokens, jwts, clock, random, logger }),
    enrolments: createEnrolments({ cache: store.cache, clock, random }),
    hosts: createHosts({ store: store.hosts, clients: registry, revocations, admins, clock, random, logger }),
    clients: createClients({
      store: store.clients,
      registry,
      revocations,
      admins,
      random,
      logger,
      operatorClientId,
    }),
    mintedTokens: createMintedTokens({ store: store.mintedTokens, jwts, revocations, admins, clock, logger }),
  };
}

interface Closing {
  store: GatewayStore;
  plugins: PluginRuntime;
  elsewhere: Elsewhere;
  dispatcher: WebhookDispatcher;
  stopHousekeeping: () => Promise<void>;
  lock: Awaited<ReturnType<typeof acquireOwnerLock>>;
}

/** Who calls one of the gateway's own endpoints; counted against the same limits as proxied calls. */
/** A plugin's container calls the services behind the gateway; secrets, tokens and hosts are not its to administer. */
function refuseContainers({ kind }: Principal): void {
  if (kind !== 'container') return;
  throw new PlatformError(
    'FORBIDDEN',
    "A container's token is for its plugin's platform calls; administer with a token of your own.",
  );
}

function limited(authenticator: Authenticator, limitRequests: LimitRequests | null): Authenticate {
  return async (request) => {
    const caller = await authenticator.authenticate(subjectOf(request));
    refuseContainers(caller);
    limitRequests?.(countedOf(request, caller));
    return caller;
  };
}

/** What runs ends first, then what it runs on. */
function closer({ store, plugins, elsewhere, dispatcher, stopHousekeeping, lock }: Closing) {
  return async (): Promise<void> => {
    await dispatcher.close();
    await plugins.close();
    elsewhere.close();
    await stopHousekeeping();
    await store.close();
    lock.release();
  };
}
