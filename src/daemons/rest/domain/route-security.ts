import { type Caller, OAUTH_HOST_PREFIX, type Security } from '../../../contracts/index.ts';
import { PlatformError } from '../../../kit/errors.ts';

/** The host id of callers that showed no identity. */
const ANONYMOUS = 'anonymous';
/** The host id of a plugin's container begins with this. @spec JWT claims */
const CONTAINER = 'container:';

/** Whether an identity satisfies one way of `security`. @spec docs/decisions.md "Route security" */
const SATISFIES: Record<Security, (caller: Caller) => boolean> = {
  none: () => true,
  token: isKnown,
  user: (caller) => isKnown(caller) && !caller.hostId.startsWith(CONTAINER),
  oauth: (caller) => caller.hostId.startsWith(OAUTH_HOST_PREFIX),
};

function isKnown({ hostId }: Caller): boolean {
  return hostId !== ANONYMOUS;
}

/**
 * Lets the caller pass when any listed way is satisfied; a route without `security` leaves it to the daemon's own
 * rule of who may call it. Throws UNAUTHORIZED to somebody unknown, FORBIDDEN to somebody known. @spec Plugin routes 8
 */
export function requireSecurity(security: readonly Security[] | undefined, caller: Caller): void {
  if (!security || security.some((way) => SATISFIES[way](caller))) return;
  const wanted = security.join(' or ');
  if (caller.hostId === ANONYMOUS) {
    throw new PlatformError(
      'UNAUTHORIZED',
      `This route wants ${wanted}: call it through the gateway with a Bearer token.`,
      {
        details: { security },
        headers: { 'www-authenticate': 'Bearer' },
      },
    );
  }
  throw new PlatformError('FORBIDDEN', `This route wants ${wanted}, which your token is not.`, {
    details: { security },
  });
}

/** Whom the handler sees as its user: nobody when the caller showed no identity. */
export function userOf(caller: Caller): Caller | null {
  return caller.hostId === ANONYMOUS ? null : { hostId: caller.hostId, namespaceId: caller.namespaceId };
}
