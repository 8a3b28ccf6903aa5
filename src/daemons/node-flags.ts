import type { ServiceName } from '../contracts/index.ts';

/**
 * Flags that reduce the total memory of five idle services from 498 to 461 MB. By default, V8 keeps large semi-spaces
 * and the code compiled at the start.
 */
const SMALL = ['--max-semi-space-size=2', '--optimize-for-size'];

/**
 * Flags of the gateway. With smaller semi-spaces, garbage collection took a tenth of the CPU time. The memory reducer
 * is disabled, because the reducer would drop compiled code after eight idle seconds.
 */
const FLAGS: Record<ServiceName, readonly string[]> = {
  gateway: ['--max-semi-space-size=32', '--no-memory-reducer'],
  marketplace: SMALL,
  rest: SMALL,
  state: SMALL,
  workflow: SMALL,
};

export function nodeFlagsOf(name: ServiceName): string[] {
  return [...FLAGS[name]];
}
