import { type Client, createClient } from '../../http/index.ts';
import { postgresUrlOf } from '../../kit/config/store-url.ts';
import { instanceId } from '../../kit/files/instance-id.ts';
import { minutes } from '../../kit/time/duration.ts';
import { openTelemetryReader } from '../../store/open-store.ts';
import type { TelemetryReader } from '../../store/ports/telemetry.ts';
import type { DaemonServices, Resources } from '../define-daemon.ts';
import { joinMembers } from '../membership/join-members.ts';
import type { Membership } from '../membership/membership.ts';
import { createOAuthVerifier, type VerifyOAuth } from '../oauth/verifier.ts';
import type { Reread } from '../plugin-runtime/reread.ts';
import { PluginRuntime } from '../plugin-runtime/runtime.ts';
import { followPlugins, openSharedPlugins } from '../plugin-runtime/shared/open-shared-plugins.ts';
import { LoadedRoutes } from './domain/loaded-routes.ts';
import { createOperationMetrics, createTelemetryMetrics, type Observe } from './metrics.ts';

/**
 * Timeout of calls to other services. The timeout equals the gateway's timeout, because an installation downloads
 * packages and can take minutes.
 */
const OWNER_TIMEOUT_MS = minutes(2);

/** Services that own parts of the REST API. */
export type Owner = 'workflow' | 'marketplace';

export interface RestServices extends DaemonServices {
  plugins: PluginRuntime;
  reread: Reread;
  /** Undefined with SQLite. */
  membership?: Membership;
  pluginRoutes: LoadedRoutes;
  owners: Record<Owner, Client>;
  observe: Observe;
  telemetry: TelemetryReader;
  internalSecret: string;
  /** Timeout of routes whose manifest sets no timeout. */
  routeTimeoutMs: number;
  /** Host ids that are allowed to run commands and to see every tenant's records. */
  admins: readonly string[];
  verifyOAuth: VerifyOAuth | undefined;
}

/** Loads the plugins, builds their route table, and reports invalid routes. */
export async function restServices(resources: Resources, stack: AsyncDisposableStack): Promise<RestServices> {
  const { clock, config, dataDir, env, keys, logger, metrics, peers, random } = resources;
  const postgresUrl = postgresUrlOf(config.store, env);
  const reader = openTelemetryReader({
    ...{ postgresUrl, dataDir, clock, logger },
    node: instanceId(dataDir, env, random),
  });
  const telemetry = stack.adopt(reader, (opened) => opened.close());
  const shared = await openSharedPlugins('rest', resources, stack);
  const joining = { kind: 'rest', release: null, keys: null } as const;
  const membership = shared && (await joinMembers(resources, shared.store.members, joining, stack));
  const plugins = stack.adopt(await PluginRuntime.open(resources), (opened) => opened.close());
  createTelemetryMetrics(metrics, telemetry);
  const ownerClient = (owner: Owner): Client =>
    createClient({ url: () => peers.urlOf(owner), peer: owner, timeoutMs: OWNER_TIMEOUT_MS });
  const pluginRoutes = new LoadedRoutes({ plugins, clock, logger });
  if (membership) await followPlugins(shared, { runtime: plugins, fence: membership.fence }, stack);
  return {
    ...{ plugins, pluginRoutes },
    ...(membership ? { membership, withdraw: () => membership.withdraw() } : {}),
    reread: () => plugins.upToDate(),
    owners: { workflow: ownerClient('workflow'), marketplace: ownerClient('marketplace') },
    observe: createOperationMetrics(metrics),
    telemetry,
    internalSecret: keys.internalSecret,
    routeTimeoutMs: config.rest.timeoutMs,
    verifyOAuth: config.rest.oauth ? createOAuthVerifier(config.rest.oauth, { clock, logger }) : undefined,
    admins: config.gateway.admins,
  };
}
