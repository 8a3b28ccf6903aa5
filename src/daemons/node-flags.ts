import type { ServiceName } from '../contracts/index.ts';

/**
 * How much memory may be young, in megabytes of a half, where Node's 16 is wrong. In the gateway a burst of deliveries is then
 * collected so often that what is still under way gets copied again and again: a tenth of what accepting one costs (it grows
 * under load alone). The marketplace never needs what starting alone makes of it.
 */
const YOUNG_MB: Partial<Record<ServiceName, number>> = { gateway: 32, marketplace: 2 };

/** Flags of the `node` that runs a service. */
export function nodeFlagsOf(name: ServiceName): string[] {
  const young = YOUNG_MB[name];
  return young === undefined ? [] : [`--max-semi-space-size=${young}`];
}
