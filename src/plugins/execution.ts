import type { CommandResult, ExecutionRequest, HostTarget } from '../contracts/index.ts';

export interface RunOptions {
  /** Aborts `ctx.signal` of the handler. If the handler does not stop, its process is ended. */
  signal?: AbortSignal;
  /** Receives the stream that the handler returns. If no sink is given, a handler that returns a stream fails. */
  stream?: StreamSink;
  /** Called when the handler starts. If it is set, the call waits for a process without a time limit. */
  onBegun?: () => void;
  /** Runs the call alone in a process. Used after a shared process crashed, to find the call at fault. */
  alone?: boolean;
  /** Narrows the configured choice of hosts. Only the `host` backend uses it. */
  target?: HostTarget;
  /** Whether another gateway passed on this call, because the host is connected to this one. */
  isOwnerCall?: boolean;
  /** The request's input as JSON text, if the caller has it. The input is then not serialized again. */
  inputText?: string;
}

/** Receives the stream that a handler returns. */
export interface StreamSink {
  /** Called once, before the first chunk. */
  start(contentType: string): void;
  /** Resolves when there is room for the next chunk. */
  write(piece: Buffer): Promise<void>;
}

/**
 * Runs plugin code outside this process. Throws EXECUTION_ERROR, EXECUTION_TIMEOUT, HOST_MISMATCH, INVALID_HANDLER,
 * VALIDATION_ERROR, PERMISSION_DENIED, SANDBOX_ERROR, or SERVICE_UNAVAILABLE with Retry-After.
 */
export interface ExecutionBackend {
  readonly name: string;
  run(request: ExecutionRequest, options?: RunOptions): Promise<CommandResult>;
  close(): Promise<void>;
}

/** Context of a platform call. Tenant and plugin come from the request, never from plugin code. */
export interface PlatformCallContext {
  request: ExecutionRequest;
  signal: AbortSignal;
}

/** A service available in a handler's context: `state`, `cache`, `fetch`, … */
export type PlatformService = Record<
  string,
  (context: PlatformCallContext, args: unknown[]) => Promise<unknown>
>;
export type PlatformServices = Record<string, PlatformService>;
