import { ANONYMOUS_HOST, type Caller } from '../contracts/index.ts';
import { PlatformError } from '../kit/errors.ts';

/**
 * Lets those pass who run this platform: the hosts of `gateway.admins`, and in development whoever reaches the
 * service itself. Throws FORBIDDEN. @spec docs/decisions.md "Operators"
 */
export function requireOperator({ hostId }: Caller, admins: readonly string[], what: string): void {
  if (hostId === ANONYMOUS_HOST || admins.includes(hostId)) return;
  throw new PlatformError('FORBIDDEN', `Only an operator may ${what}; add "${hostId}" to gateway.admins.`, {
    details: { hostId },
  });
}
