import type { Role } from '../../contracts/role.ts';
import { IS_PORTAL } from '../app/portal-address.ts';
import { useQuery } from './query.ts';

const ORDER: readonly Role[] = ['viewer', 'editor', 'admin'];

/**
 * Returns whether the caller has at least this role, so that a screen offers only what will be accepted. False until
 * the role is known. The gateway decides in any case.
 */
export function useCan(needed: Role): boolean {
  const { data } = useQuery('whoAmI', {}, { enabled: !IS_PORTAL });
  // What a portal offers is what its token may do.
  if (IS_PORTAL) return true;
  if (!data) return false;
  // Without a role, none restricts the caller. Null: the caller has no role in this namespace.
  if (data.role === undefined) return true;
  return data.role !== null && ORDER.indexOf(data.role) >= ORDER.indexOf(needed);
}

/** Returns whether the caller administers the platform, and so may act for all namespaces. */
export function useIsOperator(): boolean {
  return useQuery('whoAmI', {}, { enabled: !IS_PORTAL }).data?.admin ?? false;
}
