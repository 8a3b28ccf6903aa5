import { join } from 'node:path';
import { seconds } from '../../kit/duration.ts';
import type { GatewayStore } from '../../store/ports/index.ts';
import { acquireOwnerLock, sqliteGatewayStore } from '../../store/sqlite/index.ts';
import type { Resources } from '../define-daemon.ts';
import { createAuthenticator } from './domain/authenticator.ts';
import { createClientRegistry } from './domain/client-registry.ts';
import { createJwts } from './domain/jwt.ts';
import { signingKeys } from './domain/signing-secrets.ts';
import { syncStaticTokens } from './domain/static-tokens.ts';
import { createTokenExchange } from './domain/token-exchange.ts';
import { upstreamRequestCounter } from './metrics.ts';
import { createForwarder } from './proxy/forward.ts';
import { createUndiciClient } from './proxy/undici-client.ts';
import { createUpstreams } from './proxy/upstreams.ts';
import { subjectOf } from './routes/subject.ts';

/** A gateway that is restarted finds its predecessor still writing its last answers. */
const LOCK_WAIT_MS = seconds(5);

export type GatewayServices = Awaited<ReturnType<typeof gatewayServices>>;

/** Opens `svc.db`, of which the gateway is the only owner, and builds the gateway's parts on it. */
export async function gatewayServices(resources: Resources) {
  const { dataDir, profile, keys, clock, logger } = resources;
  // First, because it refuses a start: nothing is open yet.
  const signing = signingKeys(keys, profile, logger);
  const lock = await acquireOwnerLock({
    file: join(dataDir, 'svc.db'),
    waitMs: LOCK_WAIT_MS,
    label: 'gateway',
  });
  let store: GatewayStore | undefined;
  try {
    store = await sqliteGatewayStore({ dataDir, clock, logger });
    return { ...(await build(resources, store, signing)), close: closer(store, lock) };
  } catch (error) {
    await store?.close();
    lock.release();
    throw error;
  }
}

async function build(resources: Resources, store: GatewayStore, keys: ReturnType<typeof signingKeys>) {
  const { config, clock, random, logger, operator, metrics, peers } = resources;
  const { staticTokens: entries, upstreams, upstreamTimeoutMs, bodyLimitBytes } = config.gateway;
  const staticTokens = await syncStaticTokens(store.cache, entries, logger);
  const jwts = createJwts({ keys, clock, random });
  const clients = createClientRegistry({ store: store.clients, clock });
  if (operator) await clients.adopt({ ...operator, name: 'operator' });
  const exchange = createTokenExchange({
    clients,
    refreshTokens: store.refreshTokens,
    jwts,
    clock,
    random,
    logger,
  });
  const authenticator = createAuthenticator({
    staticTokens,
    jwts,
    revocations: { isRevoked: () => false },
    clock,
    logger,
  });
  const upstreamClient = createUndiciClient({ timeoutMs: upstreamTimeoutMs });
  const forward = createForwarder({
    client: upstreamClient,
    internalSecret: resources.keys.internalSecret,
    bodyLimitBytes,
    count: upstreamRequestCounter(metrics),
    logger,
  });
  return {
    store,
    authenticator,
    authenticate: (request: Parameters<typeof subjectOf>[0]) =>
      authenticator.authenticate(subjectOf(request)),
    exchange,
    upstreams: createUpstreams(upstreams, peers),
    upstreamClient,
    forward,
  };
}

function closer(store: GatewayStore, lock: Awaited<ReturnType<typeof acquireOwnerLock>>) {
  return async (): Promise<void> => {
    await store.close();
    lock.release();
  };
}
