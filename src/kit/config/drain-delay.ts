import type { PlatformConfig, ServiceName } from '../../contracts/index.ts';
import { seconds } from '../time/duration.ts';

/**
 * Default delay in a cluster. By default, HAProxy detects a 503 of `/ready` after 4 to 6 s (three checks, 2 s apart).
 * With `inter 1s fall 2`, HAProxy needs 2 s.
 */
const CLUSTER_DELAY_MS = seconds(5);

/**
 * Returns how long a stopping service stays open after `/ready` answers 503, in ms. The delay is 0 except for the
 * gateway, because only the gateway is behind load balancers.
 */
export function drainDelayMsOf({ gateway, cluster }: PlatformConfig, name: ServiceName): number {
  if (name !== 'gateway') return 0;
  return gateway.drainDelayMs ?? (cluster.enabled ? CLUSTER_DELAY_MS : 0);
}
