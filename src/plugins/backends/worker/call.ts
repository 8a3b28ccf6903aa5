import type { CommandResult, ExecutionRequest } from '../../../contracts/index.ts';
import { messageOf, PlatformError } from '../../../kit/errors/errors.ts';
import type { RunOptions, StreamSink } from '../../execution.ts';
import type { ExecuteFrame } from '../../runner/protocol.ts';

/** A requested execution. It settles once, so only the first call of `resolve` or `reject` has an effect. */
export interface Call {
  readonly request: ExecutionRequest;
  /**
   * Serialized `execute` frame. The frame is created when the call arrives, because the queue limits the total size of
   * all frames.
   */
  readonly frame: string;
  readonly timeoutMs: number;
  readonly promise: Promise<CommandResult>;
  readonly isSettled: boolean;
  readonly stream: StreamSink | undefined;
  /**
   * Callback that is called when the handler starts. If this function is set, the call waits in the queue without a
   * time limit.
   */
  readonly onBegun: (() => void) | undefined;
  /** Whether the call runs in a process without other calls. Calls that only wait in the process count too. */
  readonly isAlone: boolean;
  resolve(result: CommandResult): void;
  reject(error: PlatformError): void;
  /**
   * Sets the function that cancels the call. The queue sets a function first, and the process that runs the call
   * replaces it.
   */
  cancelWith(run: () => void): void;
}

/** Creates a call with its serialized frame. Throws VALIDATION_ERROR if the input cannot be serialized as JSON. */
export function createCall(request: ExecutionRequest, options: RunOptions): Call {
  const { signal, stream, inputText, onBegun, alone } = options;
  const frame = executeFrame(request, { stream, onBegun }, inputText);
  const { promise, resolve, reject } = Promise.withResolvers<CommandResult>();
  let isSettled = false;
  let cancel = () => {};
  const onAbort = () => cancel();
  signal?.addEventListener('abort', onAbort, { once: true });

  function settle(run: () => void): void {
    if (isSettled) return;
    isSettled = true;
    signal?.removeEventListener('abort', onAbort);
    run();
  }
  return {
    request,
    frame,
    stream,
    onBegun,
    isAlone: alone === true,
    timeoutMs: Math.min(request.timeoutMs, request.permissions.quotas?.timeoutMs ?? Number.POSITIVE_INFINITY),
    promise,
    get isSettled() {
      return isSettled;
    },
    resolve: (result) => settle(() => resolve(result)),
    reject: (error) => settle(() => reject(error)),
    cancelWith(run) {
      cancel = run;
    },
  };
}

function executeFrame(
  { executionId, plugin: _, permissions: __, input, ...request }: ExecutionRequest,
  { stream, onBegun }: Pick<RunOptions, 'stream' | 'onBegun'>,
  inputText: string | undefined,
): string {
  try {
    // A frame must be a single line. An `inputText` with line breaks is therefore replaced with the serialized input.
    const text = inputText === undefined || inputText.includes('\n') ? JSON.stringify(input) : inputText;
    const streams = stream ? { streams: true as const } : {};
    const begun = onBegun ? { tellsBegun: true as const } : {};
    const frame: Omit<ExecuteFrame, 'request'> & { request: Omit<ExecuteFrame['request'], 'input'> } = {
      ...{ type: 'execute', executionId, ...streams, ...begun },
      request,
    };
    const json = JSON.stringify(frame);
    // `request` is the frame's last field, so the input is inserted before the last two braces.
    return text === undefined ? `${json}\n` : `${json.slice(0, -2)},"input":${text}}}\n`;
  } catch (cause) {
    throw new PlatformError('VALIDATION_ERROR', `The input cannot be sent as JSON: ${messageOf(cause)}`, {
      cause,
    });
  }
}

export function timedOut({ request, timeoutMs }: Pick<Call, 'request' | 'timeoutMs'>): PlatformError {
  const { handler, plugin } = request;
  return new PlatformError(
    'EXECUTION_TIMEOUT',
    `"${handler}" of plugin ${plugin.id} did not finish within ${timeoutMs} ms.`,
    { details: { timeoutMs } },
  );
}

export function cancelled(request: ExecutionRequest): PlatformError {
  return new PlatformError(
    'EXECUTION_ERROR',
    `The call of "${request.handler}" was cancelled by its caller.`,
    {
      details: { reason: 'cancelled' },
    },
  );
}

/** Returns a SERVICE_UNAVAILABLE error for a call that never ran and is therefore safe to retry. */
export function unavailable(
  message: string,
  retryAfterSeconds: number,
  reason?: 'queue_full',
): PlatformError {
  return new PlatformError('SERVICE_UNAVAILABLE', message, {
    headers: { 'retry-after': String(retryAfterSeconds) },
    details: { retryAfterSeconds, ...(reason ? { reason } : {}) },
  });
}
