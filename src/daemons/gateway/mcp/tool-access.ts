import type { AccessRule } from '../../../contracts/index.ts';
import { PlatformError } from '../../../kit/errors/errors.ts';
import type { Logger } from '../../../kit/telemetry/logger.ts';
import { allowsAccess, requireAccess } from '../domain/access/require-access.ts';
import type { Admins } from '../domain/identity/admins.ts';
import type { Principal } from '../domain/identity/authenticator.ts';
import type { McpCall } from './platform-calls.ts';
import type { Tool } from './tool.ts';

/** Decides which tools a caller sees and may call. @spec docs/mcp.md "What a client may do" */
export class ToolAccess {
  readonly #admins: Pick<Admins, 'is'>;
  readonly #logger: Logger;

  constructor(admins: Pick<Admins, 'is'>, logger: Logger) {
    this.#admins = admins;
    this.#logger = logger;
  }

  allows(caller: Principal, tool: Tool): boolean {
    return allowsAccess(caller, ruleOf(tool)) && this.#mayDestroy(caller, tool);
  }

  /** Throws FORBIDDEN unless the scopes and the role of the caller allow the tool, and logs the refusal. */
  require({ caller, requestId, traceId }: McpCall, tool: Tool): void {
    const call = { method: 'tools/call', route: tool.name, requestId, traceId };
    requireAccess(caller, ruleOf(tool), call, this.#logger);
    if (this.#mayDestroy(caller, tool)) return;
    throw new PlatformError(
      'FORBIDDEN',
      `The tool ${tool.name} is destructive. It needs the role ${tool.needs}, given explicitly: \`svc roles grant <subject> ${tool.needs}\`.`,
      { details: { neededRole: tool.needs } },
    );
  }

  /** Callers without any role have all rights elsewhere. Agents should not have them by accident. */
  #mayDestroy(caller: Principal, { destructive }: Tool): boolean {
    if (!destructive) return true;
    return caller.access?.roles != null || this.#admins.is(caller);
  }
}

function ruleOf({ name, needs }: Tool): AccessRule {
  return { needs, scope: `mcp:${name}`, audit: 'mcp.call', object: `tool:${name}` };
}

/** Access rule under which a call of a tool is recorded. */
export const auditRuleOf = ruleOf;
