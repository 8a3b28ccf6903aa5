import type { PlatformConfig, ServiceName } from '../../contracts/index.ts';
import { seconds } from '../time/duration.ts';
import { isLoopbackHost } from './loopback.ts';

/**
 * Default delay in a cluster. HAProxy with `inter 1s fall 2` detects a 503 of `/ready` within 2 s. With HAProxy's
 * default settings, detection takes 4 to 6 s.
 */
const CLUSTER_DELAY_MS = seconds(5);

/** Other nodes read the addresses of services once per second, and their calls in flight must still arrive. */
const ADDRESS_DELAY_MS = 1500;

/**
 * Returns the time in ms for which a stopping service stays open after `/ready` answers 503. The gateway may be behind
 * load balancers. Nodes of a cluster may call the other services, unless these listen on loopback only.
 */
export function drainDelayMsOf(config: PlatformConfig, name: ServiceName): number {
  const { gateway, cluster } = config;
  if (name === 'gateway') return gateway.drainDelayMs ?? (cluster.enabled ? CLUSTER_DELAY_MS : 0);
  return cluster.enabled && !isLoopbackHost(config[name].host) ? ADDRESS_DELAY_MS : 0;
}
