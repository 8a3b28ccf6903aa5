import type { AccessRule, Role } from '../../../contracts/index.ts';
import { PlatformError } from '../../../kit/errors/errors.ts';
import type { Logger } from '../../../kit/telemetry/logger.ts';
import { allowsAccess, requireAccess } from '../domain/access/require-access.ts';
import type { Admins } from '../domain/identity/admins.ts';
import type { Principal } from '../domain/identity/authenticator.ts';
import type { McpCall } from './platform-calls.ts';
import type { Tool } from './tool.ts';

/** Access of answers of the person at a client, named like a tool. */
export const ANSWER = { name: 'elicitation', needs: 'editor' } as const;

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

  /** Returns whether the caller sees the tasks of a tool, which need not exist any more. */
  allowsTask(caller: Principal, toolName: string, needs: Role): boolean {
    return allowsAccess(caller, ruleOf({ name: toolName, needs }));
  }

  /** Throws FORBIDDEN unless the caller may see or change tasks of the tool. */
  requireTask({ caller, requestId, traceId }: McpCall, toolName: string, needs: Role): void {
    const call = { method: 'tasks', route: toolName, requestId, traceId };
    requireAccess(caller, ruleOf({ name: toolName, needs }), call, this.#logger);
  }

  /**
   * Returns whether an answer of the person at the client counts. The role must be given explicitly, and a token with
   * scopes needs the scope `mcp:elicitation`, so that agents with an allow-list cannot answer in place of a person.
   */
  mayAnswer(caller: Principal): boolean {
    return allowsAccess(caller, ruleOf(ANSWER)) && this.#hasOwnRights(caller);
  }

  /** Throws FORBIDDEN unless `mayAnswer`, and logs the refusal. */
  requireAnswer({ caller, requestId, traceId }: McpCall): void {
    const call = { method: 'elicitation/create', route: ANSWER.name, requestId, traceId };
    requireAccess(caller, ruleOf(ANSWER), call, this.#logger);
    if (this.#hasOwnRights(caller)) return;
    throw new PlatformError(
      'FORBIDDEN',
      `Answers of the person at an MCP client need the role ${ANSWER.needs}, given explicitly: \`svc roles grant <subject> ${ANSWER.needs}\`.`,
      { details: { neededRole: ANSWER.needs } },
    );
  }

  #mayDestroy(caller: Principal, { destructive }: Tool): boolean {
    return !destructive || this.#hasOwnRights(caller);
  }

  /** Callers without any role have all rights elsewhere. Agents should not have them by accident. */
  #hasOwnRights(caller: Principal): boolean {
    return caller.access?.roles != null || this.#admins.is(caller);
  }
}

function ruleOf({ name, needs }: Pick<Tool, 'name' | 'needs'>): AccessRule {
  return { needs, scope: `mcp:${name}`, audit: 'mcp.call', object: `tool:${name}` };
}

/** Access rule under which a call of a tool is recorded. */
export const auditRuleOf = ruleOf;
