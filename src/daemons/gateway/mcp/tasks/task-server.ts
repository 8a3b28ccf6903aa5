import { type JSONRPCRequest, type Result, Server, type ServerContext } from '@modelcontextprotocol/server';

export type RequestHandler = (request: JSONRPCRequest, context: ServerContext) => Promise<Result>;

/** Methods whose result can ask the client. */
const ASKING: ReadonlySet<string> = new Set(['tools/call', 'prompts/get', 'resources/read']);

/** Server whose tool calls can be answered with a task, which the MCP library refuses as the result of a tool. */
export class TaskServer extends Server {
  #asTask: ((...call: Parameters<RequestHandler>) => Promise<Result | undefined>) | undefined;
  #asking: ((handler: RequestHandler) => RequestHandler) | undefined;

  /** Sets the function that answers a tool call with a task, or returns undefined for an ordinary call. */
  onToolCall(asTask: (...call: Parameters<RequestHandler>) => Promise<Result | undefined>): void {
    this.#asTask = asTask;
  }

  /** Sets the function that lets the handlers of calls ask the client. Must be called before they are set. */
  onInputRequired(asking: (handler: RequestHandler) => RequestHandler): void {
    this.#asking = asking;
  }

  protected override _wrapHandler(method: string, handler: RequestHandler): RequestHandler {
    // The constructor of the base class calls this method before the private fields exist.
    const asking = ASKING.has(method) ? this.#asking?.(handler) : undefined;
    const standard = super._wrapHandler(method, asking ?? handler);
    if (method !== 'tools/call') return standard;
    return async (...call) => (await this.#asTask?.(...call)) ?? standard(...call);
  }
}
