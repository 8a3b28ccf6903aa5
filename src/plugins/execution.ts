import type { CommandResult, ExecutionRequest, HostTarget } from '../contracts/index.ts';

export interface RunOptions {
  /** Aborts the call: `ctx.signal` fires, then the process is ended. */
  signal?: AbortSignal;
  /** Takes the result as a stream, when the handler returns one; without it such a handler fails. */
  stream?: StreamSink;
  /** Called when the handler begins. The caller has time: the call waits for a process as long as that takes. */
  onBegun?: () => void;
  /** No other call shares its process: it was lost with one before, and whose fault that was is to be known. */
  alone?: boolean;
  /** Narrows the choice of the config; for the `host` backend alone. */
  target?: HostTarget;
  /** The request's input as JSON text, where the caller has it: whoever sends it on need not write it anew. */
  inputText?: string;
}

/** Where a handler's stream goes. */
export interface StreamSink {
  /** Once, before the first piece: the handler has returned a stream. */
  start(contentType: string): void;
  /** Resolves when there is room for the next piece. */
  write(piece: Buffer): Promise<void>;
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
