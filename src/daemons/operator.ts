import type { Caller } from '../contracts/index.ts';
import { PlatformError } from '../kit/errors.ts';

/** The host id of a call that showed no identity: only where `auth.mode` lets such calls in. */
const ANONYMOUS = 'anonymous';

/**
 * Lets those pass who run this platform: the hosts of `gateway.admins`, and in development whoever reaches the
 * service itself. Throws FORBIDDEN. @spec docs/decisions.md "Operators"
 */
export function requireOperator({ hostId }: Caller, admins: readonly string[], what: string): void {
  if (hostId === ANONYMOUS || admins.includes(hostId)) return;
  throw new PlatformError('FORBIDDEN', `Only an operator may ${what}; add "${hostId}" to gateway.admins.`, {
    details: { hostId },
  });
}
