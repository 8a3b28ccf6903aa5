import type { ServiceName } from '../contracts/index.ts';

/**
 * How much of the gateway's memory may be young, in megabytes of a half. With Node's 16 a burst of deliveries is collected so
 * often that what is still under way gets copied again and again: a tenth of what accepting one costs. It grows under load alone.
 */
const YOUNG_MB = 32;

/** Flags of the `node` that runs a service. */
export function nodeFlagsOf(name: ServiceName): string[] {
  return name === 'gateway' ? [`--max-semi-space-size=${YOUNG_MB}`] : [];
}
