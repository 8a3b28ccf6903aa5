import { type Caller, ChosenHostId } from '../../../../contracts/index.ts';
import { PlatformError } from '../../../../kit/errors/errors.ts';

/** Decides which callers may act outside their own namespace. @spec docs/decisions/0035 */
export interface Admins {
  is(caller: Caller): boolean;
  /** Throws FORBIDDEN unless the caller is an administrator. */
  require(caller: Caller): void;
  /**
   * Returns the namespace that a call acts on: `asked`, or by default the caller's own namespace. Throws FORBIDDEN if
   * `asked` is another namespace and the caller is no administrator.
   */
  scope(caller: Caller, asked: string | undefined): string;
  /**
   * Returns the namespace that a list is restricted to. Returns undefined for all namespaces if an administrator names
   * no namespace.
   */
  listScope(caller: Caller, asked: string | undefined): string | undefined;
}

export function createAdmins(hostIds: readonly string[]): Admins {
  const known = new Set(hostIds.filter((hostId) => ChosenHostId.safeParse(hostId).success));
  const is = ({ hostId }: Caller): boolean => known.has(hostId);

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
