import type { CommandResult, ExecutionRequest } from '../../contracts/index.ts';
import type { SourceCode } from '../source-code.ts';

/**
 * The frames between a daemon (or host agent) and the runner: JSON documents, one a line, over the runner's
 * file descriptor 3. What comes from the runner is untrusted: plugin code can write to the same descriptor.
 */
export const PROTOCOL_VERSION = 1;

/** Limits the runner keeps so that a plugin gets a clear error; the daemon enforces its own whatever the runner does. */
export interface RunnerLimits {
  /** Bytes of a handler's result as JSON. */
  resultBytes: number;
  /** Bytes of one frame, platform calls included. */
  frameBytes: number;
  logLinesPerSecond: number;
  logLinesAtOnce: number;
  logMessageChars: number;
}

/** The first frame: what a process needs for its whole life. */
export interface InitFrame {
  type: 'init';
  protocol: typeof PROTOCOL_VERSION;
  plugin: { id: string; version: string; root: string };
  /** URL of the SDK that `svc-platform/sdk` means. */
  sdk: string;
  /** Names of the environment variables handlers see as `ctx.env`. */
  env: string[];
  limits: RunnerLimits;
  /** Modules of the plugin, in place of those on disk. */
  code?: SourceCode;
}

/** An execution without what the process knows already or must not learn. */
export type RunnerRequest = Omit<ExecutionRequest, 'executionId' | 'plugin' | 'permissions'>;

export interface ExecuteFrame {
  type: 'execute';
  executionId: string;
  request: RunnerRequest;
  /** The caller takes a stream as the result. */
  streams?: true;
  /** The caller wants a `begun` frame. */
  tellsBegun?: true;
}

/** Room for more of a stream: the runner sends no byte that was not asked for. */
export interface PullFrame {
  type: 'pull';
  executionId: string;
  bytes: number;
}

export interface CancelFrame {
  type: 'cancel';
  executionId: string;
  reason: string;
}

export interface FrameError {
  code: string;
  message: string;
  details?: Record<string, unknown>;
}

/** The answer to a platform call. */
export type ReplyFrame = { type: 'reply'; callId: number } & (
  | { ok: true; value?: unknown }
  | { ok: false; error: FrameError }
);

export type ToRunner = InitFrame | ExecuteFrame | CancelFrame | ReplyFrame | PullFrame;

/** The runner has started; no plugin code has run. */
export interface ReadyFrame {
  type: 'ready';
  protocol: number;
}

/** The first handler module of this process was loaded: a death from here on is not one at load. */
export interface LoadedFrame {
  type: 'loaded';
}

/** The handler of an execution is loaded, its input is valid, and it begins. */
export interface BegunFrame {
  type: 'begun';
  executionId: string;
}

export interface LogFrame {
  type: 'log';
  /** Absent for lines outside any call. */
  executionId?: string;
  level: string;
  message: string;
  meta?: Record<string, unknown>;
}

export interface CallFrame {
  type: 'call';
  callId: number;
  executionId: string;
  service: string;
  method: string;
  args: unknown[];
}

/** The result is a stream; its pieces follow, then a result frame. */
export interface StreamFrame {
  type: 'stream';
  executionId: string;
  contentType: string;
}

export interface ChunkFrame {
  type: 'chunk';
  executionId: string;
  /** Base64. */
  data: string;
}

export interface ResultFrame {
  type: 'result';
  executionId: string;
  result: CommandResult;
}

export interface ErrorFrame {
  type: 'error';
  executionId: string;
  error: FrameError & { stack?: string };
}

/** Last words: an error that no handler's promise carries. */
export interface FatalFrame {
  type: 'fatal';
  reason: 'uncaught exception' | 'unhandled rejection';
  error: { message: string; stack?: string };
}

export type FromRunner =
  | ReadyFrame
  | LoadedFrame
  | BegunFrame
  | LogFrame
  | CallFrame
  | StreamFrame
  | ChunkFrame
  | ResultFrame
  | ErrorFrame
  | FatalFrame;
