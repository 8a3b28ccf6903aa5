import type { CommandResult, ExecutionRequest } from '../../contracts/index.ts';
import type { SourceCode } from '../source-code.ts';

/**
 * Version of the frame protocol between the runner and a service or host agent. A frame is one line of JSON. Frames
 * from the runner are untrusted, because plugin code can write to the same descriptor.
 */
export const PROTOCOL_VERSION = 1;

/** Limits that the runner itself enforces, to give plugins a clear error. The service enforces separate limits. */
export interface RunnerLimits {
  /** Maximum size of a handler's result as JSON, in bytes. */
  resultBytes: number;
  frameBytes: number;
  logLinesPerSecond: number;
  logLinesAtOnce: number;
  logMessageChars: number;
}

/** The first frame that the runner receives. The values in this frame do not change during the life of the process. */
export interface InitFrame {
  type: 'init';
  protocol: typeof PROTOCOL_VERSION;
  plugin: { id: string; version: string; root: string };
  /** URL to which imports of `svc-platform/sdk` resolve. */
  sdk: string;
  /** Names of the environment variables in `ctx.env`. */
  env: string[];
  limits: RunnerLimits;
  /** Source code of the plugin's modules, which replaces the files on disk. */
  code?: SourceCode;
}

/** An execution request without the fields that the runner process already has or must not receive. */
export type RunnerRequest = Omit<ExecutionRequest, 'executionId' | 'plugin' | 'permissions'>;

export interface ExecuteFrame {
  type: 'execute';
  executionId: string;
  request: RunnerRequest;
  /** Whether the caller accepts a stream as the result. */
  streams?: true;
  /** Whether the caller requests a `begun` frame, which reports that the handler starts. */
  tellsBegun?: true;
  /** Whether the execution waits until no other execution runs. */
  ahead?: true;
}

/** Requests an execution that was sent ahead back. If the execution has started, the frame has no effect. */
export interface RecallFrame {
  type: 'recall';
  executionId: string;
}

/** Allows the runner to send more bytes of a stream. Without this credit, the runner sends no stream data. */
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

/** Reply to a call that plugin code made to a platform service. */
export type ReplyFrame = { type: 'reply'; callId: number } & (
  | { ok: true; value?: unknown }
  | { ok: false; error: FrameError }
);

export type ToRunner = InitFrame | ExecuteFrame | RecallFrame | CancelFrame | ReplyFrame | PullFrame;

/** Reports that the runner has started. No plugin code has run yet. */
export interface ReadyFrame {
  type: 'ready';
  protocol: number;
}

/** Reports that the first handler module was loaded. A later crash does not count as a crash during loading. */
export interface LoadedFrame {
  type: 'loaded';
}

/** Reports that a handler starts. The handler's module is loaded and its input is valid. */
export interface BegunFrame {
  type: 'begun';
  executionId: string;
}

/**
 * Reports that an execution that was sent ahead starts. The runner sends the frame before any plugin code of the
 * execution runs. Other frames about the execution imply the start, except log lines.
 */
export interface StartedFrame {
  type: 'started';
  executionId: string;
}

/** Returns a recalled execution, none of whose code has run. */
export interface ReturnedFrame {
  type: 'returned';
  executionId: string;
}

export interface LogFrame {
  type: 'log';
  /** Id of the execution that wrote the log line. Absent for lines written outside of any execution. */
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

/** Reports that the result is a stream. The chunks of the stream and then a result frame follow. */
export interface StreamFrame {
  type: 'stream';
  executionId: string;
  contentType: string;
}

export interface ChunkFrame {
  type: 'chunk';
  executionId: string;
  /** Content of the chunk, as base64. */
  data: string;
}

export interface ResultFrame {
  type: 'result';
  executionId: string;
  /**
   * Duration of the execution in ms. Error frames contain it too. Absent for the first execution of a handler in a
   * process, which includes the time to load code.
   */
  tookMs?: number;
  result: CommandResult;
}

export interface ErrorFrame {
  type: 'error';
  executionId: string;
  tookMs?: number;
  error: FrameError & { stack?: string };
}

/** Reports an uncaught exception or an unhandled rejection, before the process exits. */
export interface FatalFrame {
  type: 'fatal';
  reason: 'uncaught exception' | 'unhandled rejection';
  error: { message: string; stack?: string };
}

export type FromRunner =
  | ReadyFrame
  | LoadedFrame
  | BegunFrame
  | StartedFrame
  | ReturnedFrame
  | LogFrame
  | CallFrame
  | StreamFrame
  | ChunkFrame
  | ResultFrame
  | ErrorFrame
  | FatalFrame;
