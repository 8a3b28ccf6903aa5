import { type JSONRPCRequest, type Result, Server, type ServerContext } from '@modelcontextprotocol/server';

type Handler = (request: JSONRPCRequest, context: ServerContext) => Promise<Result>;

/** Server whose tool calls can be answered with a task, which the MCP library refuses as the result of a tool. */
export class TaskServer extends Server {
  #asTask: ((...call: Parameters<Handler>) => Promise<Result | undefined>) | undefined;

  /** Sets the function that answers a tool call with a task, or returns undefined for an ordinary call. */
  onToolCall(asTask: (...call: Parameters<Handler>) => Promise<Result | undefined>): void {
    this.#asTask = asTask;
  }

  protected override _wrapHandler(method: string, handler: Handler): Handler {
    const standard = super._wrapHandler(method, handler);
    if (method !== 'tools/call') return standard;
    return async (...call) => (await this.#asTask?.(...call)) ?? standard(...call);
  }
}
