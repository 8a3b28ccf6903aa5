import { ALL_NAMESPACES, type Caller, type CallerAccess, ChosenHostId } from '../../../../contracts/index.ts';
import { PlatformError } from '../../../../kit/errors/errors.ts';

/**
 * Decides which callers are administrators, who are allowed to act outside their own namespace. @spec
 * docs/decisions/0035
 */
export interface Admins {
  is(caller: Caller): boolean;
  /** Throws FORBIDDEN unless the caller is an administrator. */
  require(caller: Caller): void;
  /**
   * Returns the requested namespace `asked`, or the caller's own namespace by default. Throws FORBIDDEN if a caller who
   * is not an administrator requests another namespace.
   */
  scope(caller: Caller, asked: string | undefined): string;
  /**
   * Returns the namespace to which a list is restricted. Returns undefined, which means all namespaces, if an
   * administrator requests no specific namespace.
   */
  listScope(caller: Caller, asked: string | undefined): string | undefined;
}

/**
 * Returns whether roles and scopes let the caller act outside its own namespace. Roles for single namespaces and scopes
 * do not.
 */
function actsEverywhere(access: CallerAccess | undefined): boolean {
  if (!access) return true;
  return access.scopes === null && (access.roles === null || access.roles.has(ALL_NAMESPACES));
}

export function createAdmins(hostIds: readonly string[]): Admins {
  const known = new Set(hostIds.filter((hostId) => ChosenHostId.safeParse(hostId).success));
  const is = ({ hostId, access }: Caller): boolean =>
    (known.has(hostId) || access?.actsEverywhere === true) && actsEverywhere(access);

  function require(caller: Caller): void {
    if (!is(caller))
      throw new PlatformError(
        'FORBIDDEN',
        "Only administrators may do this: add the host id to gateway.admins, or use the operator's login.",
      );
  }
  function requireOwn(caller: Caller, asked: string | undefined): void {
    if (asked !== undefined && asked !== caller.namespaceId && !is(caller)) {
      throw new PlatformError('FORBIDDEN', 'Only administrators may act on another namespace.');
    }
  }
  return {
    is,
    require,
    scope(caller, asked) {
      requireOwn(caller, asked);
      return asked ?? caller.namespaceId;
    },
    listScope(caller, asked) {
      requireOwn(caller, asked);
      return asked ?? (is(caller) ? undefined : caller.namespaceId);
    },
  };
}
