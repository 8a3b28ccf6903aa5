import type { ServiceName } from '../contracts/index.ts';

/**
 * Node flags per service. Gateway: at the default semi-space of 16 MB, collecting in-flight deliveries took a
 * tenth of the CPU time; the memory reducer drops compiled code after eight quiet seconds, which slows the
 * next burst by a third. Marketplace: a smaller young generation suffices.
 */
const FLAGS: Partial<Record<ServiceName, readonly string[]>> = {
  gateway: ['--max-semi-space-size=32', '--no-memory-reducer'],
  marketplace: ['--max-semi-space-size=2'],
};

export function nodeFlagsOf(name: ServiceName): string[] {
  return [...(FLAGS[name] ?? [])];
}
