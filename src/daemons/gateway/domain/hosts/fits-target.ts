import type { HostTarget } from '../../../../contracts/index.ts';

/**
 * Returns whether a host has the labels and the capability that a call requires. The id of the host is not compared.
 */
export function fitsTarget(
  host: { labels: Record<string, string>; capabilities: ReadonlySet<string> },
  { labels = {}, capability }: HostTarget,
): boolean {
  if (capability !== undefined && !host.capabilities.has(capability)) return false;
  return Object.entries(labels).every(
    ([name, value]) => Object.hasOwn(host.labels, name) && host.labels[name] === value,
  );
}
