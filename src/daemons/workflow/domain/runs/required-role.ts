import { type CallVia, includesRole, type Role } from '../../../../contracts/index.ts';
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

/** Throws FORBIDDEN if an agent makes the call, unless the step allows agents. @spec docs/workflows.md "Agents" */
export function requireAgents(
  answer: 'approval' | 'decision' | { signal: string },
  agents: true | undefined,
  via: CallVia | undefined,
): void {
  if (via !== 'agent' || agents) return;
  const message =
    answer === 'approval'
      ? 'This approval needs a person: agents may not answer it. A person answers in the studio, by svc workflows approve, or when the MCP client asks. To let agents answer, set agents: true in the step.'
      : answer === 'decision'
        ? 'This decision needs a person: agents may not make it. A person decides in the studio or by svc workflows decide.'
        : `The signal "${answer.signal}" needs a person: agents may not send it. A person sends it in the studio, by svc workflows signal, or when the MCP client asks. To let agents send it while steps wait for it, set agents: true in these steps.`;
  throw new PlatformError('FORBIDDEN', message, { details: { reason: 'agents' } });
}
