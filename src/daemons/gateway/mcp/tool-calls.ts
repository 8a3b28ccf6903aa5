import { PLATFORM_CODES } from '../../../contracts/index.ts';
import { rateLimited } from '../../../http/index.ts';
import { PlatformError, toPlatformError } from '../../../kit/errors/errors.ts';
import type { SharedLimiter } from '../../../kit/limits/rate-limiter.ts';
import type { Logger } from '../../../kit/telemetry/logger.ts';
import type { AuditLog } from '../domain/audit/audit-log.ts';
import { callerKey } from './authenticated-call.ts';
import type { McpCall, PlatformCalls } from './platform-calls.ts';
import { answerOf, failureOf, type ToolResult } from './results.ts';
import type { Tool, ToolRun } from './tool.ts';
import { auditRuleOf, type ToolAccess } from './tool-access.ts';

export interface ToolCallsDeps {
  access: ToolAccess;
  audit: AuditLog;
  limiter: SharedLimiter;
  limits: { callsPerMinute: number; concurrentCalls: number };
  logger: Logger;
}

const FAILED_STATUS = 500;

/** Runs tools for callers: checks access and limits, and records each call in the audit log. */
export class ToolCalls {
  readonly #deps: ToolCallsDeps;
  readonly #inFlight = new Map<string, number>();

  constructor(deps: ToolCallsDeps) {
    this.#deps = deps;
  }

  /** Returns the result of the tool, or an error result with a platform code. */
  async run(
    tool: Tool,
    input: unknown,
    call: McpCall,
    { platform, ...rest }: { platform: PlatformCalls } & Pick<ToolRun, 'client' | 'questions'>,
  ): Promise<ToolResult> {
    const key = callerKey(call);
    let status = 200;
    let hasEntered = false;
    let hasStarted = false;
    let result: ToolResult;
    try {
      const release = await this.#enter(key);
      hasEntered = true;
      try {
        this.#deps.access.require(call, tool);
        const run: ToolRun = {
          call: (endpoint, parts) => platform.call(endpoint, parts, call),
          ...rest,
          signal: call.signal,
        };
        hasStarted = true;
        result = answerOf(tool, await tool.run(input ?? {}, run));
      } finally {
        release();
      }
    } catch (thrown) {
      const error = toPlatformError(thrown);
      status = error.status;
      this.#report(tool, call, error);
      result = failureOf(error, hasStarted && tool.hasOutsideData);
    }
    // Floods must not fill the audit log. A tool that ran is recorded, also if it failed with this status.
    if (!hasEntered && status === PLATFORM_CODES.RATE_LIMIT_EXCEEDED) return result;
    return this.#recorded(tool, input, call, { status, result });
  }

  /** Runs work that is no tool under the limits of the caller. Waits for tasks have permits of their own. */
  async limited<Result>(
    call: McpCall,
    work: () => Promise<Result>,
    { isWait = false } = {},
  ): Promise<Result> {
    const caller = callerKey(call);
    const release = await this.#enter(caller, isWait ? callerKey(call, 'waits') : caller);
    try {
      return await work();
    } finally {
      release();
    }
  }

  /** Runs work and records it in the audit log like the call of a tool with this name. */
  async recorded(name: string, input: unknown, call: McpCall, work: () => Promise<void>): Promise<void> {
    const record = (status: number): Promise<void> =>
      this.#record({ name, needs: 'editor' }, input, call, status);
    try {
      await work();
    } catch (thrown) {
      await record(toPlatformError(thrown).status);
      throw thrown;
    }
    await record(200);
  }

  /** Takes a permit of the caller, and counts the call. */
  async #enter(caller: string, key = caller): Promise<() => void> {
    const { limiter, limits } = this.#deps;
    const inFlight = this.#inFlight.get(key) ?? 0;
    if (inFlight >= limits.concurrentCalls)
      throw new PlatformError(
        'CONCURRENT_LIMIT_EXCEEDED',
        `${limits.concurrentCalls} calls of this caller are in flight. Wait for one of them to end.`,
        { details: { limit: limits.concurrentCalls } },
      );
    this.#inFlight.set(key, inFlight + 1);
    const release = (): void => {
      const left = this.#inFlight.get(key)! - 1;
      if (left === 0) this.#inFlight.delete(key);
      else this.#inFlight.set(key, left);
    };
    try {
      const { allowed, resetMs } = await limiter.take(caller, limits.callsPerMinute);
      if (!allowed) throw rateLimited(limits.callsPerMinute, resetMs);
    } catch (error) {
      release();
      throw error;
    }
    return release;
  }

  /** Adds the audit entry. A call that cannot be recorded is reported as failed. */
  async #recorded(
    tool: Tool,
    input: unknown,
    call: McpCall,
    { status, result }: { status: number; result: ToolResult },
  ): Promise<ToolResult> {
    try {
      await this.#record(tool, input, call, status);
      return result;
    } catch (error) {
      const { requestId, traceId } = call;
      this.#deps.logger.error(`The call of the tool ${tool.name} could not be recorded in the audit log`, {
        ...{ requestId, traceId, error },
      });
      return failureOf(
        new PlatformError(
          'INTERNAL_ERROR',
          `The call ended with status ${status}, but the audit log could not record it. Check the result before you repeat the call.`,
          { details: { status } },
        ),
        false,
      );
    }
  }

  async #record(
    tool: Pick<Tool, 'name' | 'needs'>,
    input: unknown,
    { caller, requestId, traceId }: McpCall,
    status: number,
  ): Promise<void> {
    await this.#deps.audit.record({
      ...{ caller, requestId, traceId, status },
      rule: auditRuleOf(tool),
      path: `/mcp/${tool.name}`,
      parts: { params: {}, body: input },
      outcome: status < 400 ? 'succeeded' : 'failed',
    });
  }

  #report({ name }: Tool, { requestId, traceId }: McpCall, error: PlatformError): void {
    if (error.status < FAILED_STATUS) return;
    const cause = error.cause ?? error;
    this.#deps.logger.error(`The tool ${name} failed: ${error.message}`, {
      requestId,
      traceId,
      error: cause,
    });
  }
}
