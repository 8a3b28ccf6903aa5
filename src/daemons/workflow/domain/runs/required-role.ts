import { includesRole, type Role } from '../../../../contracts/index.ts';
import { PlatformError } from '../../../../kit/errors/errors.ts';

/**
 * Throws FORBIDDEN if a caller has none of the roles, nor a higher one. `what` is the subject of the message. The role is
 * undefined for calls without a gateway. @spec docs/workflows.md "Forms"
 */
export function requireRole(what: string, roles: readonly Role[], role: Role | null | undefined): void {
  if (role && roles.some((needed) => includesRole(role, needed))) return;
  const needed = roles.join(' or ');
  const reason =
    role === undefined
      ? 'the call did not come through the gateway, which knows the role'
      : `you have ${role === null ? 'no role' : `the role ${role}`} in this namespace`;
  throw new PlatformError('FORBIDDEN', `${what} needs the role ${needed}, but ${reason}.`, {
    details: { neededRoles: [...roles], role: role ?? null },
  });
}
