import { z } from 'zod';
import { ALL_NAMESPACES, RoleSubject } from '../../../contracts/index.ts';
import type { GlobalFlags } from '../../globals.ts';
import { selectedNamespace } from '../../selected-namespace.ts';

export const subjectArgument = RoleSubject.describe(
  'client:<client id>, host:<host id> or claim:<name>=<value>',
);

export const allNamespacesFlag = z.boolean().default(false).describe('all namespaces');

/** Returns the namespace of a role: all namespaces, or the one that `--namespace` selects, if any. */
export function roleNamespace(
  allNamespaces: boolean,
  globals: Pick<GlobalFlags, 'namespace'>,
): { namespaceId?: NonNullable<ReturnType<typeof selectedNamespace>> | typeof ALL_NAMESPACES } {
  if (allNamespaces) return { namespaceId: ALL_NAMESPACES };
  const namespaceId = selectedNamespace(globals);
  return namespaceId ? { namespaceId } : {};
}

/** Returns the name of a role's namespace for the terminal. */
export const namespaceText = (namespaceId: string): string =>
  namespaceId === ALL_NAMESPACES ? 'all namespaces' : namespaceId;
