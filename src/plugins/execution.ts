import type { CommandResult, ExecutionRequest } from '../contracts/index.ts';

export interface RunOptions {
  /** Aborts the call: `ctx.signal` fires, then the process is ended. */
  signal?: AbortSignal;
}

/**
 * Runs plugin code somewhere that is not this process. Resolves with what the handler returned; throws
 * EXECUTION_ERROR (threw, exited, out of memory), EXECUTION_TIMEOUT, HOST_MISMATCH, INVALID_HANDLER,
 * VALIDATION_ERROR (input against its schema), PERMISSION_DENIED, SANDBOX_ERROR, or
 * SERVICE_UNAVAILABLE with Retry-After (queue full).
 */
export interface ExecutionBackend {
  readonly name: string;
  run(request: ExecutionRequest, options?: RunOptions): Promise<CommandResult>;
  close(): Promise<void>;
}

/** What a handler's call to the platform is about; tenant and plugin come from the request, never from the plugin. */
export interface PlatformCallContext {
  request: ExecutionRequest;
  signal: AbortSignal;
}

/** One service that handlers reach through their context: `state`, `cache`, `fetch`, … */
export type PlatformService = Record<
  string,
  (context: PlatformCallContext, args: unknown[]) => Promise<unknown>
>;
export type PlatformServices = Record<string, PlatformService>;
