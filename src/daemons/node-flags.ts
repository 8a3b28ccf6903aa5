import type { ServiceName } from '../contracts/index.ts';

/**
 * Flags of the `node` that runs a service, where its own defaults are wrong.
 *
 * How much memory may be young, in megabytes of a half: in the gateway a burst of deliveries is collected so often at Node's
 * 16 that what is still under way gets copied again and again: a tenth of what accepting one costs (it grows under load
 * alone). The marketplace never needs what starting alone makes of it.
 *
 * The memory reducer gives back what a burst took after eight quiet seconds, and compiled code goes with it: shapes of objects
 * that nobody holds just then are forgotten, and all that was compiled for them. The next burst then costs a third more for
 * two seconds, which is when it matters. Without it the gateway keeps some 60 MB after a burst of 30,000.
 */
const FLAGS: Partial<Record<ServiceName, readonly string[]>> = {
  gateway: ['--max-semi-space-size=32', '--no-memory-reducer'],
  marketplace: ['--max-semi-space-size=2'],
};

export function nodeFlagsOf(name: ServiceName): string[] {
  return [...(FLAGS[name] ?? [])];
}
