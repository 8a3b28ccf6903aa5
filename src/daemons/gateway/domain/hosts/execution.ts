import {
  type CommandResult,
  type ExecutionRequest,
  type GatewayFrame,
  HOST_SOCKET,
} from '../../../../contracts/index.ts';
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
import { reported } from './failures.ts';
import type { AgentFrameOf } from './frames.ts';

/** Time that the gateway waits for the agent's result after the handler's timeout, which the agent enforces. */
const GRACE_MS = seconds(2);
/** Time for the agent to fetch a missing plugin and to start a process. This time is added to the handler's timeout. */
const PREPARE_MS = seconds(60);
/**
 * Maximum time that an execution waits in the host's queue. This time is added to the timeout only if the caller is
 * notified when the handler starts. The start of the handler then restarts the timeout.
 */
const QUEUE_MS = days(1);
/** Assumed minimum transfer rate in bytes per ms, used to extend timeouts for large inputs and results. */
const MIN_BYTES_PER_MS = 256;

/** The part of an agent's connection that executions use. */
export interface HostLink {
  readonly hostId: string;
  /** Number of bytes that are not yet flushed to the network. */
  readonly backlog: number;
  /** Sends a frame. Returns false if the frame is too large. Frames with the same execution id keep their order. */
  send(frame: GatewayFrame, executionId?: string): boolean;
  /** Discards unsent frames of an execution. */
  withdraw(executionId: string): void;
  /** Closes the connection because the agent violated the protocol. */
  refuse(why: string): void;
}

export interface HostExecutionDeps {
  link: HostLink;
  services: PlatformServices;
  clock: Clock;
  logger: Logger;
}

/** Frames that an agent sends for an execution. */
export type ExecutionFrame = AgentFrameOf<
  'progress' | 'begun' | 'log' | 'call' | 'stream' | 'chunk' | 'result' | 'error'
>;

type ReplyOutcome = Extract<GatewayFrame, { type: 'reply' }>['outcome'];

/** Execution in flight on a host. Each execution settles exactly once. */
export class HostExecution {
  readonly request: ExecutionRequest;
  readonly #deps: HostExecutionDeps;
  readonly #sink: RunOptions['stream'];
  readonly #onSettled: () => void;
  readonly #settled = Promise.withResolvers<CommandResult>();
  readonly #abort = new AbortController();
  readonly #calls: CallRouter;
  /**
   * Callback that is called once, when the handler starts. Undefined after this call, or if the caller needs no
   * notification.
   */
  #onBegun: (() => void) | undefined;
  /** Stream that the handler has returned, if any. */
  #stream: OpenStream | undefined;
  #hasLongFrame = false;
  #progress: 'given' | AgentFrameOf<'progress'>['state'] = 'given';
  #stopTimer: () => void = () => {};
  #isOver = false;

  /** `onSettled` is called once, before `result` settles. */
  constructor(
    request: ExecutionRequest,
    { stream, onBegun }: Pick<RunOptions, 'stream' | 'onBegun'>,
    deps: HostExecutionDeps,
    onSettled: () => void,
  ) {
    this.request = request;
    this.#deps = deps;
    this.#sink = stream;
    this.#onBegun = onBegun;
    this.#onSettled = onSettled;
    this.#calls = createCallRouter({
      services: deps.services,
      logger: deps.logger,
      reply: ({ callId, type: _, ...outcome }) => this.#reply(callId, outcome),
    });
  }

  get result(): Promise<CommandResult> {
    return this.#settled.promise;
  }

  /** Sends the `execute` frame to the agent and starts the timeout. Returns false if the frame is too large. */
  send(frame: GatewayFrame): boolean {
    const { link } = this.#deps;
    const queueMs = this.#onBegun ? QUEUE_MS : 0;
    if (!link.send(frame, this.request.executionId)) return false;
    this.#armTimer(this.request.timeoutMs + GRACE_MS + transferMs(link.backlog) + queueMs);
    return true;
  }

  take(frame: ExecutionFrame): void {
    if (frame.type === 'progress') this.#noteProgress(frame);
    else if (frame.type === 'begun') this.#begin();
    else if (frame.type === 'log') writeLog(this.#deps.services, frame, this.request, this.#abort.signal);
    else if (frame.type === 'call')
      this.#calls.handle(frame, { request: this.request, signal: this.#abort.signal });
    else if (frame.type === 'stream') this.#beginStream(frame);
    else if (frame.type === 'chunk') this.#takeChunk(frame);
    else if (frame.type === 'result') this.#takeResult(frame);
    else this.reject(reported(frame.error, this.#deps.link.hostId));
  }

  /** Extends the timeout when a large frame starts to arrive, because the frame might contain the result. */
  expectLong(): void {
    // The timeout is extended only once. Otherwise an agent could delay the timeout forever.
    if (this.#stream || this.#hasLongFrame) return;
    this.#hasLongFrame = true;
    this.#armTimer(this.request.timeoutMs + GRACE_MS + transferMs(HOST_SOCKET.agentFrameBytes));
  }

  reject(error: PlatformError): void {
    if (!this.#settle()) return;
    this.#settled.reject(error);
    this.#abort.abort();
  }

  /** Rejects the execution and sends a cancel frame to the agent. */
  giveUp(error: PlatformError, reason: string): void {
    const { link } = this.#deps;
    const { executionId } = this.request;
    link.withdraw(executionId);
    link.send({ type: 'cancel', executionId, reason });
    this.reject(error);
  }

  #resolve(result: CommandResult): void {
    if (!this.#settle()) return;
    this.#settled.resolve(result);
    this.#abort.abort();
  }

  /** Marks the execution as settled. Returns false if the execution was already settled. */
  #settle(): boolean {
    if (this.#isOver) return false;
    this.#isOver = true;
    this.#onSettled();
    this.#stopTimer();
    this.#stream?.close();
    return true;
  }

  #armTimer(ms: number): void {
    this.#stopTimer();
    this.#stopTimer = this.#deps.clock.after(ms, () =>
      this.giveUp(this.#timedOut(), `not finished within ${this.request.timeoutMs} ms`),
    );
  }

  #timedOut(): PlatformError {
    return timedOut({ request: this.request, timeoutMs: this.request.timeoutMs });
  }

  #reply(callId: number, outcome: ReplyOutcome): void {
    const { link } = this.#deps;
    if (link.send({ type: 'reply', callId, outcome })) return;
    const message = `The reply is larger than the ${HOST_SOCKET.gatewayFrameBytes} bytes that a host accepts.`;
    link.send({
      type: 'reply',
      callId,
      outcome: { ok: false, error: { code: 'PAYLOAD_TOO_LARGE', message } },
    });
  }

  #noteProgress({ state }: AgentFrameOf<'progress'>): void {
    // Each state extends the timeout only once, so that an agent cannot postpone the timeout forever.
    if (this.#progress === 'running' || this.#progress === state || this.#stream) return;
    this.#progress = state;
    if (this.#onBegun) return;
    this.#armTimer(this.request.timeoutMs + (state === 'preparing' ? PREPARE_MS : GRACE_MS));
  }

  /**
   * Restarts the timeout at the first `begun` frame. Later `begun` frames do not extend the timeout. Has no effect
   * without `#onBegun`, or after the handler returned a stream.
   */
  #begin(): void {
    const onBegun = this.#onBegun;
    this.#onBegun = undefined;
    if (!onBegun || this.#stream) return;
    this.#armTimer(this.request.timeoutMs + GRACE_MS);
    onBegun();
  }

  #beginStream({ executionId, contentType }: AgentFrameOf<'stream'>): void {
    const { link, clock } = this.#deps;
    const opened =
      this.#sink &&
      !this.#stream &&
      openStream(contentType, {
        sink: this.#sink,
        clock,
        idleMs: this.request.timeoutMs + GRACE_MS,
        windowBytes: HOST_SOCKET.streamWindowBytes,
        pull: (bytes) => void link.send({ type: 'pull', executionId, bytes }),
        onTimeout: () => this.giveUp(this.#timedOut(), 'the stream stalled'),
      });
    if (opened) {
      this.#stopTimer();
      this.#stream = opened;
    } else link.refuse('sent a stream that was not requested, or without a valid content type');
  }

  #takeChunk({ data }: AgentFrameOf<'chunk'>): void {
    if (this.#stream?.take(Buffer.from(data, 'base64'))) return;
    this.#deps.link.refuse('sent more of a stream than was requested');
  }

  #takeResult(frame: AgentFrameOf<'result'>): void {
    try {
      const result = readResult({ result: frame.result });
      // Agents of earlier releases do not send `begun` frames. In this case, the caller is notified when the result
      // arrives.
      this.#onBegun?.();
      const drained = this.#stream?.drained;
      if (!drained) this.#resolve(result);
      else
        drained.then(
          () => this.#resolve(result),
          () => this.reject(cancelled(this.request)),
        );
    } catch (error) {
      this.reject(error as PlatformError);
    }
  }
}

export function writeLog(
  services: PlatformServices,
  { level, message, meta }: AgentFrameOf<'log'>,
  request: ExecutionRequest,
  signal: AbortSignal,
): void {
  services.log?.write?.({ request, signal }, [level, message, meta]).catch(() => {});
}

function transferMs(bytes: number): number {
  return bytes / MIN_BYTES_PER_MS;
}
