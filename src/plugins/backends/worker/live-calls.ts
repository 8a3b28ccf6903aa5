import type { CommandResult } from '../../../contracts/index.ts';
import { PlatformError } from '../../../kit/errors/errors.ts';
import type { Logger } from '../../../kit/telemetry/logger.ts';
import { type Clock, systemClock } from '../../../kit/time/clock.ts';
import type { PlatformCallContext, PlatformServices } from '../../execution.ts';
import type { ToRunner } from '../../runner/protocol.ts';
import type { PluginLogSink } from '../../services/log.ts';
import { type Call, cancelled, timedOut } from './call.ts';
import { type CallRouter, createCallRouter } from './call-router.ts';
import { describeExit, type EndReason, lostProcess, type ProcessExit } from './exit-reason.ts';
import { type RawFrame, readCall, readError, readResult, readText } from './frames.ts';
import { HandlerTimeout } from './handler-timeout.ts';
import { type OpenStream, openStream } from './open-stream.ts';

/** Time for other calls to finish in a process whose handler has ignored its abort. */
const OTHER_CALLS_GRACE_MS = 10_000;
const MAX_LOG_FRAME_CHARS = 64 * 1024;
/** Reason for aborting platform calls that are still in flight when their handler ends. */
const HANDLER_ENDED = new PlatformError('EXECUTION_ERROR', 'The handler ended without awaiting this call.');

export interface LiveCallsDeps {
  pluginId: string;
  services: PlatformServices;
  sink: PluginLogSink;
  logger: Logger;
  /** Clock for timeouts of calls. Timers that protect this service from plugin code use the system clock instead. */
  clock: Clock;
  send(frame: ToRunner): void;
  endProcess(reason: EndReason): void;
  /** Called when a call or its process has ended. `tookMs` is the duration, if the untrusted process reports one. */
  onFree(call: Call, tookMs?: number): void;
}

interface LiveCall {
  call: Call;
  /** Aborts the platform calls of the handler. Created when the handler makes its first platform call. */
  abort?: AbortController;
  timeout: HandlerTimeout;
  hasBegun?: true;
  /** Whether the handler is still running at the end of its grace period after an abort. */
  isStuck?: true;
  /** Stream that the handler has returned, if any. */
  stream?: OpenStream;
}

/**
 * Tracks the calls that run in one process, including aborted calls with running handlers. Applies the timeouts of
 * calls. Handles untrusted frames from the process.
 */
export class LiveCalls {
  readonly #deps: LiveCallsDeps;
  readonly #live = new Map<string, LiveCall>();
  readonly #router: CallRouter;
  /** Scheduled end of the process, set once a handler has ignored its abort. */
  #ending: { reason: EndReason; stop(): void } | null = null;

  constructor(deps: LiveCallsDeps) {
    this.#deps = deps;
    this.#router = createCallRouter({
      services: deps.services,
      logger: deps.logger,
      reply: (frame) => deps.send(frame),
    });
  }

  get size(): number {
    return this.#live.size;
  }

  get all(): Call[] {
    return Array.from(this.#live.values(), ({ call }) => call);
  }

  /**
   * Returns whether a handler ignores its abort signal. The process then accepts no new calls, and exits when its
   * remaining calls have ended.
   */
  get isStuck(): boolean {
    return [...this.#live.values()].some((entry) => entry.isStuck);
  }

  /**
   * Adds a call and starts its time limit. If a call with the same execution id is running, rejects the new call and
   * returns false.
   */
  add(call: Call): boolean {
    const { executionId } = call.request;
    if (this.#live.has(executionId)) {
      call.reject(new PlatformError('CONFLICT', `The execution ${executionId} is already running.`));
      return false;
    }
    const timeout = new HandlerTimeout(this.#deps.clock, call, () =>
      this.#giveUp(entry, timedOut(call), { kind: 'timeout' }),
    );
    const entry: LiveCall = { call, timeout };
    timeout.limitLoading();
    this.#live.set(executionId, entry);
    const cancel = (): void => this.#giveUp(entry, cancelled(call.request), { kind: 'cancelled' });
    call.cancelWith(cancel);
    // A call that was sent ahead can start after it was cancelled.
    if (call.isSettled) cancel();
    return true;
  }

  /** Rejects all calls of a process that has ended. */
  failAll(exit: ProcessExit): void {
    const { pluginId, logger, onFree } = this.#deps;
    const entries = [...this.#live.values()];
    this.#live.clear();
    this.#ending?.stop();
    // An exit without running calls is normal, unless code that a handler left running exceeded a limit.
    const exceeded = ['memory', 'children', 'blocked'].includes(exit.ended?.kind ?? '');
    if (entries.length === 0 && !exceeded) return;
    const meta = { exitCode: exit.code, signal: exit.signal, calls: entries.length };
    logger.warn(`A plugin's process ${describeExit(exit).message}`, { pluginId, meta });
    const lost = entries.filter(({ call }) => !call.isSettled);
    const error = lostProcess(exit, pluginId, lost.length > 1);
    for (const entry of entries) {
      entry.timeout.stop();
      entry.stream?.close();
      entry.abort?.abort(error);
      entry.call.reject(error);
      onFree(entry.call);
    }
  }

  /** Handles a frame of `length` characters about an execution. Returns false if the frame is invalid. */
  take(frame: RawFrame, length: number): boolean {
    const entry = typeof frame.executionId === 'string' ? this.#live.get(frame.executionId) : undefined;
    if (frame.type === 'log') return this.#writeLog(frame, entry, length);
    if (!entry) return false;
    if (frame.type === 'begun') return this.#begin(entry);
    if (frame.type === 'call') return this.#routeCall(frame, entry);
    if (frame.type === 'stream') return this.#beginStream(frame, entry);
    if (frame.type === 'chunk') return this.#takeChunk(frame, entry);
    if (frame.type === 'result')
      return this.#settle(entry, frame, () => this.#succeed(entry, readResult(frame)));
    if (frame.type === 'error')
      return this.#settle(entry, frame, () => this.#reportError(entry, readError(frame)));
    return false;
  }

  #writeLog(frame: RawFrame, entry: LiveCall | undefined, length: number): boolean {
    const meta = length <= MAX_LOG_FRAME_CHARS ? frame.meta : undefined;
    if (entry) this.#log(entry, frame.level, frame.message, meta);
    else this.#deps.sink.write({ pluginId: this.#deps.pluginId }, frame.level, frame.message, meta);
    return true;
  }

  /** Writes a line about a call by `ctx.log`. On a host, that is the log of the gateway, which knows what to mask. */
  #log(entry: LiveCall, level: unknown, message: unknown, meta: unknown): void {
    const { pluginId, services, sink } = this.#deps;
    const write = Object.hasOwn(services, 'log') ? services.log?.write : undefined;
    const { requestId, traceId, tenantId } = entry.call.request;
    if (write) write(this.#contextOf(entry), [level, message, meta]).catch(() => {});
    else sink.write({ pluginId, requestId, traceId, tenantId }, level, message, meta);
  }

  #contextOf(entry: LiveCall): PlatformCallContext {
    entry.abort ??= new AbortController();
    return { request: entry.call.request, signal: entry.abort.signal };
  }

  /** Starts the handler's time limit. Repeated `begun` frames are invalid, so plugin code cannot extend the limit. */
  #begin(entry: LiveCall): boolean {
    const { call } = entry;
    if (!call.onBegun || entry.hasBegun || call.isSettled) return false;
    entry.hasBegun = true;
    entry.timeout.limitHandler();
    call.onBegun();
    return true;
  }

  #routeCall(frame: RawFrame, entry: LiveCall): boolean {
    const call = readCall(frame);
    // The code of an aborted handler can run for a moment longer. Such code must not use the platform.
    if (!call || entry.call.isSettled) return false;
    this.#router.handle(call, this.#contextOf(entry));
    return true;
  }

  #beginStream(frame: RawFrame, entry: LiveCall): boolean {
    const { call } = entry;
    if (!call.stream || entry.stream || call.isSettled) return false;
    const { executionId } = call.request;
    // From here on, the stream's idle timeout replaces the handler's time limit.
    entry.timeout.stop();
    const opened = openStream(readText(frame.contentType, 512), {
      sink: call.stream,
      clock: this.#deps.clock,
      idleMs: call.timeoutMs,
      pull: (bytes) => this.#deps.send({ type: 'pull', executionId, bytes }),
      onTimeout: () => this.#giveUp(entry, timedOut(call), { kind: 'timeout' }),
    });
    if (!opened) this.#deps.endProcess({ kind: 'protocol', what: 'sent an invalid content type' });
    else entry.stream = opened;
    return true;
  }

  #takeChunk(frame: RawFrame, entry: LiveCall): boolean {
    if (!entry.stream || typeof frame.data !== 'string') return false;
    if (entry.call.isSettled) return true;
    if (!entry.stream.take(Buffer.from(frame.data, 'base64')))
      this.#deps.endProcess({ kind: 'protocol', what: 'sent more of a stream than it was asked for' });
    return true;
  }

  /** Resolves the call. A call with a stream resolves after the reader has taken the whole stream. */
  #succeed({ call, stream }: LiveCall, result: CommandResult): void {
    if (!stream) call.resolve(result);
    else
      stream.drained
        .then(
          () => call.resolve(result),
          () => call.reject(cancelled(call.request)),
        )
        .finally(stream.close);
  }

  #reportError(entry: LiveCall, error: PlatformError): void {
    const { call, stream } = entry;
    stream?.close();
    if (call.isSettled) return;
    const { code, message, details, cause } = error;
    const at = typeof details.at === 'string' ? { at: details.at } : {};
    const stack = cause instanceof Error && cause.stack ? { stack: cause.stack } : {};
    this.#log(entry, 'error', `"${call.request.handler}" failed: ${message}`, { code, ...at, ...stack });
    call.reject(error);
  }

  /**
   * Removes a call whose handler has ended, and settles the call with `run`. Aborts platform calls that are in flight.
   */
  #settle(entry: LiveCall, { tookMs }: RawFrame, run: () => void): boolean {
    entry.timeout.stop();
    this.#live.delete(entry.call.request.executionId);
    if (!this.isStuck) {
      this.#ending?.stop();
      this.#ending = null;
    }
    try {
      run();
    } catch (error) {
      entry.stream?.close();
      entry.call.reject(error as PlatformError);
    }
    entry.abort?.abort(HANDLER_ENDED);
    this.#endIfAlone();
    this.#deps.onFree(entry.call, typeof tookMs === 'number' ? tookMs : undefined);
    return true;
  }

  /**
   * Schedules the end of a process whose handler ignores its abort. The delay lets the other calls of the process
   * finish.
   */
  #overrun(entry: LiveCall, reason: EndReason): void {
    entry.isStuck = true;
    this.#ending ??= {
      reason,
      stop: systemClock.after(OTHER_CALLS_GRACE_MS, () => this.#deps.endProcess(reason)),
    };
    this.#endIfAlone();
  }

  #endIfAlone(): void {
    if (this.#ending && [...this.#live.values()].every(({ call }) => call.isSettled))
      this.#deps.endProcess(this.#ending.reason);
  }

  /**
   * Rejects the call at once and aborts its handler. If the handler is still running after the grace period, the
   * process ends.
   */
  #giveUp(entry: LiveCall, error: PlatformError, reason: EndReason): void {
    const { executionId } = entry.call.request;
    entry.call.reject(error);
    entry.timeout.stop();
    entry.stream?.close();
    // If the handler has already ended, only the reader of its stream was slow. The process can continue.
    if (this.#live.get(executionId) !== entry) return;
    entry.abort?.abort(error);
    this.#deps.send({ type: 'cancel', executionId, reason: error.message });
    entry.timeout.startGracePeriod(() => this.#overrun(entry, reason));
  }
}
