import type { CommandResult, ExecutionRequest, HostTarget } from '../contracts/index.ts';

export interface RunOptions {
  /** Aborts `ctx.signal` of the handler. If the handler does not stop, its process is terminated. */
  signal?: AbortSignal;
  /** Receives the stream that the handler returns. Without a sink, a handler that returns a stream fails. */
  stream?: StreamSink;
  /**
   * Callback that is called when the handler starts. If this callback is set, the call waits for a free process without
   * a time limit.
   */
  onBegun?: () => void;
  /**
   * Runs the call in a process without other calls. After a crash of a shared process, this option shows which call
   * causes the crash.
   */
  alone?: boolean;
  /** Restricts the remote hosts that can run the call. Only the `host` backend uses this option. */
  target?: HostTarget;
  /** Whether another gateway forwarded the call to this gateway, to which the remote host is connected. */
  isOwnerCall?: boolean;
  /**
   * The request's input as JSON text, if the caller has already serialized the input. Avoids a second serialization.
   */
  inputText?: string;
}

export interface StreamSink {
  /** Callback that is called once, before the first chunk. */
  start(contentType: string): void;
  /** Resolves when the receiver has room for the next chunk. */
  write(piece: Buffer): Promise<void>;
}

/**
 * Runs plugin code outside this process. `run` throws EXECUTION_ERROR, EXECUTION_TIMEOUT, HOST_MISMATCH,
 * INVALID_HANDLER, VALIDATION_ERROR, PERMISSION_DENIED, SANDBOX_ERROR, or SERVICE_UNAVAILABLE with Retry-After.
 */
export interface ExecutionBackend {
  readonly name: string;
  run(request: ExecutionRequest, options?: RunOptions): Promise<CommandResult>;
  close(): Promise<void>;
}

/**
 * Context of a plugin's call to a platform service. Plugin code is untrusted, so the tenant and the plugin are read
 * from `request`.
 */
export interface PlatformCallContext {
  request: ExecutionRequest;
  signal: AbortSignal;
}

/** A service that handlers use through their context, such as `state`, `cache` or `fetch`. */
export type PlatformService = Record<
  string,
  (context: PlatformCallContext, args: unknown[]) => Promise<unknown>
>;
export type PlatformServices = Record<string, PlatformService>;
