import { type Caller, ChosenHostId } from '../../../../contracts/index.ts';
import { PlatformError } from '../../../../kit/errors.ts';

/** Who may act beyond its own namespace. @spec docs/decisions/0035 */
export interface Admins {
  is(caller: Caller): boolean;
  /** Throws FORBIDDEN. */
  require(caller: Caller): void;
  /** The namespace a call acts on: the caller's own, or for administrators any. Throws FORBIDDEN for another's. */
  scope(caller: Caller, asked: string | undefined): string;
  /** As `scope` for lists, where an administrator who names none sees all. */
  listScope(caller: Caller, asked: string | undefined): string | undefined;
}

export function createAdmins(hostIds: readonly string[]): Admins {
  const known = new Set(hostIds.filter((hostId) => ChosenHostId.safeParse(hostId).success));
  const is = ({ hostId }: Caller): boolean => known.has(hostId);

  function require(caller: Caller): void {
    if (!is(caller))
      throw new PlatformError(
        'FORBIDDEN',
        "This is for administrators: add the host id to gateway.admins, or use the operator's login.",
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
