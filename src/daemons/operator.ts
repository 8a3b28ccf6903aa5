import { ANONYMOUS_HOST, type Caller } from '../contracts/index.ts';
import { PlatformError } from '../kit/errors.ts';

/**
 * Lets those pass who run this platform: the hosts of `gateway.admins`. Whoever merely reaches the port is none, also
 * in development: a plugin that is installed runs as the user of the platform, which is more than every process, web
 * page and user of this machine should be given. Throws UNAUTHORIZED, FORBIDDEN. @spec docs/decisions/0028
 */
export function requireOperator({ hostId }: Caller, admins: readonly string[], what: string): void {
  if (hostId === ANONYMOUS_HOST) {
    throw new PlatformError(
      'UNAUTHORIZED',
      `Only an operator may ${what}, and this call shows nobody: call the gateway with an operator's token (svc status --env prints one), or use the svc command.`,
      { headers: { 'www-authenticate': 'Bearer' } },
    );
  }
  if (admins.includes(hostId)) return;
  throw new PlatformError('FORBIDDEN', `Only an operator may ${what}; add "${hostId}" to gateway.admins.`, {
    details: { hostId },
  });
}
