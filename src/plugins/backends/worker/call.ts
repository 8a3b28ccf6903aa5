import type { CommandResult, ExecutionRequest } from '../../../contracts/index.ts';
import { messageOf, PlatformError } from '../../../kit/errors.ts';
import type { RunOptions, StreamSink } from '../../execution.ts';
import type { ExecuteFrame } from '../../runner/protocol.ts';

/** One execution on its way; it settles once, whatever happens to its process afterwards. */
export interface Call {
  readonly request: ExecutionRequest;
  /** The execute frame as a line, made when the call came so that its size counts while it waits. */
  readonly frame: string;
  readonly timeoutMs: number;
  readonly promise: Promise<CommandResult>;
  readonly isSettled: boolean;
  readonly stream: StreamSink | undefined;
  /** Whose caller has time, and wants to know when the handler begins. */
  readonly onBegun: (() => void) | undefined;
  resolve(result: CommandResult): void;
  reject(error: PlatformError): void;
  /** What to do when its caller leaves: the queue's way at first, then the process's. */
  cancelWith(run: () => void): void;
}

/** Throws VALIDATION_ERROR when the request cannot be sent as JSON. */
export function createCall(request: ExecutionRequest, options: RunOptions): Call {
  const { signal, stream, inputText, onBegun } = options;
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
    // A frame is one line: text of several is written anew.
    const text = inputText === undefined || inputText.includes('\n') ? JSON.stringify(input) : inputText;
    const streams = stream ? { streams: true as const } : {};
    const begun = onBegun ? { tellsBegun: true as const } : {};
    const frame: Omit<ExecuteFrame, 'request'> & { request: Omit<ExecuteFrame['request'], 'input'> } = {
      ...{ type: 'execute', executionId, ...streams, ...begun },
      request,
    };
    const json = JSON.stringify(frame);
    // The request is the frame's last field, so that the input goes in before the two last braces.
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

/** SERVICE_UNAVAILABLE for a call that never ran, so that it may safely be sent again. */
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
