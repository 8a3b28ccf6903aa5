import {
  ANONYMOUS_HOST,
  type Caller,
  CONTAINER_HOST_PREFIX,
  OAUTH_HOST_PREFIX,
  type Security,
} from '../../../contracts/index.ts';
import { PlatformError } from '../../../kit/errors.ts';

/** What a route without `security` asks of a call that the gateway let in without a token. */
const IDENTIFIED: readonly Security[] = ['token'];

/** Whether an identity satisfies one way of `security`. @spec docs/plugins.md "Routes" */
const SATISFIES: Record<Security, (caller: Caller) => boolean> = {
  none: () => true,
  token: isKnown,
  user: (caller) => isKnown(caller) && !caller.hostId.startsWith(CONTAINER_HOST_PREFIX),
  oauth: (caller) => caller.hostId.startsWith(OAUTH_HOST_PREFIX),
};

function isKnown({ hostId }: Caller): boolean {
  return hostId !== ANONYMOUS_HOST;
}

/**
 * Lets the caller pass when any listed way is satisfied; a route without `security` leaves it to the daemon's own
 * rule of who may call it. `isStranger`: the gateway says that there was no token, which it lets pass for routes that
 * list `none`; what it read may be an older version of the plugin, so that such a call gets nowhere else.
 * Throws UNAUTHORIZED to somebody unknown, FORBIDDEN to somebody known. @spec Plugin routes 8
 */
export function requireSecurity(
  declared: readonly Security[] | undefined,
  caller: Caller,
  isStranger: boolean,
): void {
  const security = declared ?? (isStranger ? IDENTIFIED : undefined);
  if (!security || security.some((way) => SATISFIES[way](caller))) return;
  const wanted = security.join(' or ');
  if (caller.hostId === ANONYMOUS_HOST) {
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
  return caller.hostId === ANONYMOUS_HOST ? null : { hostId: caller.hostId, namespaceId: caller.namespaceId };
}
