import type { PlatformConfig, ServiceName } from '../../contracts/index.ts';

/**
 * Returns the time in ms for which a stopping service stays open after `/ready` answers 503. Only the gateway is behind
 * load balancers.
 */
export function drainDelayMsOf({ gateway }: PlatformConfig, name: ServiceName): number {
  return name === 'gateway' ? gateway.drainDelayMs : 0;
}
