import type { PlatformConfig, ServiceName } from '../../contracts/index.ts';
import { seconds } from '../time/duration.ts';

/**
 * Default delay in a cluster. HAProxy needs 4 to 6 s by default to detect a 503 of `/ready`. With `inter 1s fall 2`,
 * HAProxy needs 2 s.
 */
const CLUSTER_DELAY_MS = seconds(5);

/**
 * Returns the time in ms for which a stopping service accepts requests after `/ready` answers 503. The time is 0 for
 * all services except the gateway, because only the gateway is behind load balancers.
 */
export function drainDelayMsOf({ gateway, cluster }: PlatformConfig, name: ServiceName): number {
  if (name !== 'gateway') return 0;
  return gateway.drainDelayMs ?? (cluster.enabled ? CLUSTER_DELAY_MS : 0);
}
