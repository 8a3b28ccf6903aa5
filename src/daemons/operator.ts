import { ANONYMOUS_HOST, type Caller } from '../contracts/index.ts';
import { PlatformError } from '../kit/errors/errors.ts';

/**
 * Throws UNAUTHORIZED or FORBIDDEN unless the caller is a host in `gateway.admins`. Installed plugins run as the
 * platform's user, so access to the port alone is not sufficient. @spec docs/security.md "Boundaries"
 */
export function requireOperator({ hostId }: Caller, admins: readonly string[], what: string): void {
  if (hostId === ANONYMOUS_HOST) {
    throw new PlatformError(
      'UNAUTHORIZED',
      `Only an operator may ${what}, and this call is not authenticated: call the gateway with an operator's token (svc status --env prints one), or use the svc command.`,
      { headers: { 'www-authenticate': 'Bearer' } },
    );
  }
  if (admins.includes(hostId)) return;
  throw new PlatformError('FORBIDDEN', `Only an operator may ${what}; add "${hostId}" to gateway.admins.`, {
    details: { hostId },
  });
}
