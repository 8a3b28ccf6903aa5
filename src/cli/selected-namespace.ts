import { NamespaceId } from '../contracts/index.ts';
import type { GlobalFlags } from './globals.ts';
import { UsageError } from './parse-args.ts';

/** Returns the namespace given by `--namespace`, if any. Throws UsageError if the namespace is invalid. */
export function selectedNamespace({ namespace }: Pick<GlobalFlags, 'namespace'>): NamespaceId | undefined {
  if (namespace === undefined) return undefined;
  const parsed = NamespaceId.safeParse(namespace);
  if (!parsed.success) throw new UsageError(`--namespace ${parsed.error.issues[0]?.message}.`);
  return parsed.data;
}
