import type { ServiceName } from '../contracts/index.ts';

/**
 * Gateway: with smaller semi-spaces, collecting in-flight deliveries took a tenth of the CPU time; the memory reducer
 * drops compiled code after eight quiet seconds. Marketplace: a small young generation suffices.
 */
const FLAGS: Partial<Record<ServiceName, readonly string[]>> = {
  gateway: ['--max-semi-space-size=32', '--no-memory-reducer'],
  marketplace: ['--max-semi-space-size=2'],
};

export function nodeFlagsOf(name: ServiceName): string[] {
  return [...(FLAGS[name] ?? [])];
}
