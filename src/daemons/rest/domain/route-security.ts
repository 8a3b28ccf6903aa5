import {
  ANONYMOUS_HOST,
  type Caller,
  CONTAINER_HOST_PREFIX,
  OAUTH_HOST_PREFIX,
  type Security,
} from '../../../contracts/index.ts';
import { PlatformError } from '../../../kit/errors/errors.ts';

/**
 * Requirement for a route that declares no `security`. Applies only to calls that the gateway forwarded without a
 * token.
 */
const IDENTIFIED: readonly Security[] = ['token'];

/**
 * Maps each value of `security` to a function that returns whether a caller satisfies the requirement. @spec
 * docs/plugins.md "Routes"
 */
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
 * Throws UNAUTHORIZED or FORBIDDEN unless the caller satisfies a declared alternative. `isStranger` is true for calls
 * that the gateway forwarded without a token. Such calls fail if the route declares no alternatives. @spec Plugin
 * routes 8
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
      `This route requires ${wanted}: call it through the gateway with a Bearer token.`,
      {
        details: { security },
        headers: { 'www-authenticate': 'Bearer' },
      },
    );
  }
  throw new PlatformError('FORBIDDEN', `This route requires ${wanted}; your token has another type.`, {
    details: { security },
  });
}

/** Returns the handler's `user`, or null for a caller without identity. */
export function userOf(caller: Caller): Caller | null {
  return caller.hostId === ANONYMOUS_HOST ? null : { hostId: caller.hostId, namespaceId: caller.namespaceId };
}
