import type { PlatformConfig, ServiceName } from '../../contracts/index.ts';
import { seconds } from '../time/duration.ts';

/**
 * HAProxy notices a 503 of `/ready` after 4 to 6 s by default (three checks, 2 s apart), or after 2 s with `inter 1s
 * fall 2`.
 */
const CLUSTER_DELAY_MS = seconds(5);

/**
 * Returns the time in ms for which a stopping service stays open after `/ready` answers 503. Only the gateway is behind
 * load balancers.
 */
export function drainDelayMsOf({ gateway, cluster }: PlatformConfig, name: ServiceName): number {
  if (name !== 'gateway') return 0;
  return gateway.drainDelayMs ?? (cluster.enabled ? CLUSTER_DELAY_MS : 0);
}
