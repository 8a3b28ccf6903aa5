import {
  type CommandResult,
  type ExecutionRequest,
  type GatewayFrame,
  HOST_SOCKET,
  type HostPlugin,
} from '../../../../contracts/index.ts';
import { createBoundedCache } from '../../../../kit/data/bounded-cache.ts';
import type { PlatformError } from '../../../../kit/errors/errors.ts';
import type { Logger } from '../../../../kit/telemetry/logger.ts';
import type { Clock } from '../../../../kit/time/clock.ts';
import { days, seconds } from '../../../../kit/time/duration.ts';
import {
  type CallRouter,
  cancelled,
  createCallRouter,
  type OpenStream,
  openStream,
  type PlatformServices,
  type RunOptions,
  readResult,
  timedOut,
} from '../../../../plugins/index.ts';
import { alreadySent, lost, reported, tooLarge } from './failures.ts';
import type { AgentFrameOf } from './frames.ts';
import { createLateReports } from './late-answers.ts';

/** The agent enforces the handler's timeout; the gateway gives up this much later. */
const GRACE_MS = seconds(2);
/** Additional time to fetch a missing plugin and to start a process. */
const PREPARE_MS = seconds(60);
/** Maximum wait in the host's queue, for callers that wait for the start of the handler. */
const QUEUE_MS = days(1);
/** Assumed minimum transfer rate, in bytes per ms; extends the timeouts of large inputs and results. */
const MIN_BYTES_PER_MS = 256;
/** Recently ended executions: a result for one of them is late, any other unknown id is invalid. */
const MAX_ENDED = 1024;

interface Pending {
  request: ExecutionRequest;
  sink: RunOptions['stream'];
  abort: AbortController;
  calls: CallRouter;
  /** Called when the handler starts, then undefined. */
  onBegun: (() => void) | undefined;
  /** Set once the handler has returned a stream. */
  stream?: OpenStream;
  /** Whether the timeout was already extended for a long frame of the agent. */
  hasBegun: boolean;
  /** Last reported progress. */
  progress: 'given' | AgentFrameOf<'progress'>['state'];
  reject(error: PlatformError): void;
  resolve(result: CommandResult): void;
  /** Rejects and sends a cancel frame to the agent. */
  giveUp(error: PlatformError, reason: string): void;
  armTimer(ms: number): void;
  stopTimer(): void;
}

export interface HostExecutionsDeps {
  hostId: string;
  services: PlatformServices;
  clock: Clock;
  logger: Logger;
  /** Returns false when the frame is too large; frames of one execution stay in order. */
  send(frame: GatewayFrame, executionId?: string): boolean;
  /** Bytes sent but not yet flushed. */
  backlog(): number;
  /** Discards unsent frames of an execution. */
  withdraw(executionId: string): void;
  /** Called on a protocol violation of the agent: the socket must be closed. */
  refuse(why: string): void;
}

/** Frames that belong to an execution. */
export type ExecutionFrame = AgentFrameOf<
  'progress' | 'begun' | 'log' | 'call' | 'stream' | 'chunk' | 'result' | 'error'
>;

/**
 * Executions of one session. Each settles once: by result, error, timeout, cancellation, or the end of the
 * session.
 */
export interface HostExecutions {
  readonly size: number;
  run(request: ExecutionRequest, plugin: HostPlugin, options: RunOptions): Promise<CommandResult>;
  take(frame: ExecutionFrame): void;
  /** A long frame of that execution, possibly its result, is being received: extends its timeout. */
  expectLong(executionId: string): void;
  /**
   * Rejects in-flight executions with HOST_UNAVAILABLE. They are not retried elsewhere, since their progress
   * is unknown.
   */
  failAll(why: string): void;
}

export function createHostExecutions(deps: HostExecutionsDeps): HostExecutions {
  const { hostId, services, clock, logger, send, backlog, withdraw, refuse } = deps;
  const live = new Map<string, Pending>();
  /** Requests of ended executions, for late frames; without large fields. */
  const ended = createBoundedCache<ExecutionRequest>(MAX_ENDED);

  const reportLate = createLateReports(hostId, clock, logger);

  function open(
    request: ExecutionRequest,
    { stream: sink, onBegun }: Pick<RunOptions, 'stream' | 'onBegun'>,
    deferred: PromiseWithResolvers<CommandResult>,
  ): Pending {
    const { executionId, timeoutMs } = request;
    const abort = new AbortController();
    const pending: Pending = {
      request,
      sink,
      onBegun,
      abort,
      calls: createCallRouter({
        services,
        logger,
        reply: ({ callId, type: _, ...outcome }) => reply(callId, outcome),
      }),
      hasBegun: false,
      progress: 'given',
      resolve: (result) => settle(() => deferred.resolve(result)),
      reject: (error) => settle(() => deferred.reject(error)),
      giveUp(error, reason) {
        withdraw(executionId);
        send({ type: 'cancel', executionId, reason });
        pending.reject(error);
      },
      armTimer(ms) {
        pending.stopTimer();
        pending.stopTimer = clock.after(ms, () =>
          pending.giveUp(timedOut({ request, timeoutMs }), `not finished within ${timeoutMs} ms`),
        );
      },
      stopTimer() {},
    };
    function settle(run: () => void): void {
      if (!live.delete(executionId)) return;
      ended.set(executionId, { ...request, input: undefined, hostContext: {}, params: {} });
      pending.stopTimer();
      pending.stream?.close();
      run();
      abort.abort();
    }
    live.set(executionId, pending);
    return pending;
  }

  function reply(callId: number, outcome: ReplyOutcome): void {
    const sent = send({ type: 'reply', callId, outcome });
    if (sent) return;
    const message = `The reply is larger than the ${HOST_SOCKET.gatewayFrameBytes} bytes that a host accepts.`;
    send({ type: 'reply', callId, outcome: { ok: false, error: { code: 'PAYLOAD_TOO_LARGE', message } } });
  }

  function progress({ state }: AgentFrameOf<'progress'>, pending: Pending): void {
    const { timeoutMs } = pending.request;
    // Each state extends the time once, so that an agent cannot delay the timeout forever. A stream has its
    // own timeout.
    if (pending.progress === 'running' || pending.progress === state || pending.stream) return;
    pending.progress = state;
    if (!pending.onBegun) pending.armTimer(timeoutMs + (state === 'preparing' ? PREPARE_MS : GRACE_MS));
  }

  /** Starts the handler's time limit; a second frame does not extend it. */
  function begin(pending: Pending): void {
    const { onBegun, request } = pending;
    pending.onBegun = undefined;
    if (!onBegun || pending.stream) return;
    pending.armTimer(request.timeoutMs + GRACE_MS);
    onBegun();
  }

  function log(
    { level, message, meta }: AgentFrameOf<'log'>,
    request: ExecutionRequest,
    signal: AbortSignal,
  ): void {
    services.log?.write?.({ request, signal }, [level, message, meta]).catch(() => {});
  }

  function beginStream({ executionId, contentType }: AgentFrameOf<'stream'>, pending: Pending): void {
    const { sink, request } = pending;
    const opened =
      sink &&
      !pending.stream &&
      openStream(contentType, {
        sink,
        clock,
        idleMs: request.timeoutMs + GRACE_MS,
        windowBytes: HOST_SOCKET.streamWindowBytes,
        pull: (bytes) => void send({ type: 'pull', executionId, bytes }),
        onTimeout: () =>
          pending.giveUp(timedOut({ request, timeoutMs: request.timeoutMs }), 'the stream stalled'),
      });
    if (opened) {
      pending.stopTimer();
      pending.stream = opened;
    } else refuse('sent a stream that was not requested, or without a valid content type');
  }

  function takeChunk({ data }: AgentFrameOf<'chunk'>, { stream }: Pending): void {
    if (!stream?.take(Buffer.from(data, 'base64'))) refuse('sent more of a stream than was requested');
  }

  function result(frame: AgentFrameOf<'result'>, pending: Pending): void {
    try {
      const result = readResult({ result: frame.result });
      // Agents of earlier releases send no `begun` frame.
      pending.onBegun?.();
      // Resolves after the reader took the last chunk.
      const taken = pending.stream?.drained;
      if (!taken) pending.resolve(result);
      else
        taken.then(
          () => pending.resolve(result),
          () => pending.reject(cancelled(pending.request)),
        );
    } catch (error) {
      pending.reject(error as PlatformError);
    }
  }

  /** Handles frames of ended executions; a late result is reported, since its work was lost. */
  function takeLate(frame: ExecutionFrame): void {
    const request = ended.get(frame.executionId);
    // A cancelled handler may still log why it stops.
    if (frame.type === 'log' && request) log(frame, request, AbortSignal.abort());
    if (frame.type === 'result' || frame.type === 'error')
      reportLate(frame.type, frame.executionId, request !== undefined);
    if (frame.type !== 'call') return;
    const error = { code: 'EXECUTION_ERROR', message: 'The execution has ended.' };
    send({ type: 'reply', callId: frame.callId, outcome: { ok: false, error } });
  }

  return {
    get size() {
      return live.size;
    },
    async run(request, plugin, { signal, stream, onBegun }) {
      const { executionId, plugin: _, ...rest } = request;
      if (live.has(executionId) || ended.get(executionId)) throw alreadySent(request, hostId);
      if (signal?.aborted) throw cancelled(request);
      const deferred = Promise.withResolvers<CommandResult>();
      const pending = open(request, { stream, onBegun }, deferred);
      const onAbort = (): void => pending.giveUp(cancelled(request), 'its caller disconnected');
      signal?.addEventListener('abort', onAbort, { once: true });
      const frame: GatewayFrame = {
        type: 'execute',
        executionId,
        request: { ...rest, plugin },
        ...(stream ? { streams: true } : {}),
        ...(onBegun ? { tellsBegun: true } : {}),
      };
      const queueMs = onBegun ? QUEUE_MS : 0;
      if (send(frame, executionId))
        pending.armTimer(request.timeoutMs + GRACE_MS + transferMs(backlog()) + queueMs);
      else pending.reject(tooLarge(request));
      try {
        return await deferred.promise;
      } finally {
        signal?.removeEventListener('abort', onAbort);
      }
    },
    take(frame) {
      const pending = live.get(frame.executionId);
      if (!pending) takeLate(frame);
      else if (frame.type === 'progress') progress(frame, pending);
      else if (frame.type === 'begun') begin(pending);
      else if (frame.type === 'log') log(frame, pending.request, pending.abort.signal);
      else if (frame.type === 'call')
        pending.calls.handle(frame, { request: pending.request, signal: pending.abort.signal });
      else if (frame.type === 'stream') beginStream(frame, pending);
      else if (frame.type === 'chunk') takeChunk(frame, pending);
      else if (frame.type === 'result') result(frame, pending);
      else pending.reject(reported(frame.error, hostId));
    },
    expectLong(executionId) {
      const pending = live.get(executionId);
      // Once only: an agent could otherwise delay the timeout forever.
      if (!pending || pending.stream || pending.hasBegun) return;
      pending.hasBegun = true;
      pending.armTimer(pending.request.timeoutMs + GRACE_MS + transferMs(HOST_SOCKET.agentFrameBytes));
    },
    failAll(why) {
      for (const { request, reject } of [...live.values()]) reject(lost(request, hostId, why));
    },
  };
}

function transferMs(bytes: number): number {
  return bytes / MIN_BYTES_PER_MS;
}

type ReplyOutcome = Extract<GatewayFrame, { type: 'reply' }>['outcome'];
