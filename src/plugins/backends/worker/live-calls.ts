import type { CommandResult } from '../../../contracts/index.ts';
import { PlatformError } from '../../../kit/errors/errors.ts';
import type { Logger } from '../../../kit/telemetry/logger.ts';
import { type Clock, systemClock } from '../../../kit/time/clock.ts';
import type { PlatformCallContext, PlatformServices } from '../../execution.ts';
import type { ToRunner } from '../../runner/protocol.ts';
import type { PluginLogSink } from '../../services/log.ts';
import { type Call, cancelled, timedOut } from './call.ts';
import { createCallRouter } from './call-router.ts';
import { describeExit, type EndReason, lostProcess, type ProcessExit } from './exit-reason.ts';
import { type RawFrame, readCall, readError, readResult, readText } from './frames.ts';
import { type OpenStream, openStream } from './open-stream.ts';

/** Time between the abort of `ctx.signal` and the end of the process. */
const GRACE_MS = 500;
/** Additional time for other calls in the same process. */
const OTHER_CALLS_GRACE_MS = 10_000;
/** Time limit for loading the plugin's code where it does not count as the handler's time. */
const LOAD_MS = 15_000;
const MAX_LOG_FRAME_CHARS = 64 * 1024;
/** Error of platform calls that outlive their handler. */
const HANDLER_ENDED = new PlatformError('EXECUTION_ERROR', 'The handler ended without awaiting this call.');

export interface LiveCallsDeps {
  pluginId: string;
  services: PlatformServices;
  sink: PluginLogSink;
  logger: Logger;
  /** Times the calls; timers that protect this service use real time. */
  clock: Clock;
  send(frame: ToRunner): void;
  endProcess(reason: EndReason): void;
  /** Called when a call or its process ended and its slot is free. */
  onFree(call: Call): void;
}

/** The in-flight calls of one process, including timed-out ones that have not stopped yet. */
export interface LiveCalls {
  readonly size: number;
  /**
   * A call continues after its timeout: the process accepts no more calls, and ends once the others are done.
   */
  readonly isStuck: boolean;
  /** Returns false, and rejects the call, when the execution id is already running. */
  add(call: Call): boolean;
  /**
   * Handles a frame about an execution; `length` is in characters. Returns false when the frame was invalid.
   */
  take(frame: RawFrame, length: number): boolean;
  /** Called when the process has ended. */
  failAll(exit: ProcessExit): void;
}

interface LiveCall {
  call: Call;
  /** Aborts its platform calls; created by the first of them. */
  abort?: AbortController;
  stopTimer: () => void;
  hasBegun?: true;
  /** It was aborted and has not stopped within the grace period. */
  isStuck?: true;
  /** Set once the handler has returned a stream. */
  stream?: OpenStream;
}

/** Applies the timeouts of one process's calls and handles its untrusted frames about them. */
export function createLiveCalls(deps: LiveCallsDeps): LiveCalls {
  const { pluginId, services, sink, logger, clock, send, endProcess } = deps;
  const live = new Map<string, LiveCall>();
  /** Pending end of the process, caused by stuck calls. */
  let ending: { reason: EndReason; stop(): void } | null = null;
  const router = createCallRouter({ services, logger, reply: send });

  function take(frame: RawFrame, length: number): boolean {
    const entry = typeof frame.executionId === 'string' ? live.get(frame.executionId) : undefined;
    if (frame.type === 'log') return writeLog(frame, entry, length);
    if (!entry) return false;
    if (frame.type === 'begun') return begin(entry);
    if (frame.type === 'call') return routeCall(frame, entry);
    if (frame.type === 'stream') return beginStream(frame, entry);
    if (frame.type === 'chunk') return takeChunk(frame, entry);
    if (frame.type === 'result') return settle(entry, () => succeed(entry, readResult(frame)));
    if (frame.type === 'error') return settle(entry, () => reportError(entry, readError(frame)));
    return false;
  }

  function writeLog(frame: RawFrame, entry: LiveCall | undefined, length: number): boolean {
    const meta = length <= MAX_LOG_FRAME_CHARS ? frame.meta : undefined;
    const write = Object.hasOwn(services, 'log') ? services.log?.write : undefined;
    if (entry && write) write(contextOf(entry), [frame.level, frame.message, meta]).catch(() => {});
    else sink.write({ pluginId }, frame.level, frame.message, meta);
    return true;
  }

  function contextOf(entry: LiveCall): PlatformCallContext {
    entry.abort ??= new AbortController();
    return { request: entry.call.request, signal: entry.abort.signal };
  }

  function limitTime(entry: LiveCall, ms: number): void {
    entry.stopTimer = clock.after(ms, () => giveUp(entry, timedOut(entry.call), { kind: 'timeout' }));
  }

  /** Starts the handler's time limit; a second frame does not extend it. */
  function begin(entry: LiveCall): boolean {
    const { call } = entry;
    if (!call.onBegun || entry.hasBegun || call.isSettled) return false;
    entry.hasBegun = true;
    entry.stopTimer();
    limitTime(entry, call.timeoutMs);
    call.onBegun();
    return true;
  }

  function routeCall(frame: RawFrame, entry: LiveCall): boolean {
    const call = readCall(frame);
    // A timed-out call may not use the platform, though its code may still run for a moment.
    if (!call || entry.call.isSettled) return false;
    router.handle(call, contextOf(entry));
    return true;
  }

  function beginStream(frame: RawFrame, entry: LiveCall): boolean {
    const { call } = entry;
    if (!call.stream || entry.stream || call.isSettled) return false;
    const { executionId } = call.request;
    // From here on, the stream's idle timeout applies.
    entry.stopTimer();
    const opened = openStream(readText(frame.contentType, 512), {
      sink: call.stream,
      clock,
      idleMs: call.timeoutMs,
      pull: (bytes) => send({ type: 'pull', executionId, bytes }),
      onTimeout: () => giveUp(entry, timedOut(call), { kind: 'timeout' }),
    });
    if (!opened) endProcess({ kind: 'protocol', what: 'sent an invalid content type' });
    else entry.stream = opened;
    return true;
  }

  function takeChunk(frame: RawFrame, entry: LiveCall): boolean {
    if (!entry.stream || typeof frame.data !== 'string') return false;
    if (entry.call.isSettled) return true;
    if (!entry.stream.take(Buffer.from(frame.data, 'base64')))
      endProcess({ kind: 'protocol', what: 'sent more of a stream than it was asked for' });
    return true;
  }

  /** Resolves after the reader took the last chunk; the idle timeout still applies to a stalled reader. */
  function succeed({ call, stream }: LiveCall, result: CommandResult): void {
    if (!stream) call.resolve(result);
    else
      stream.drained
        .then(
          () => call.resolve(result),
          () => call.reject(cancelled(call.request)),
        )
        .finally(stream.close);
  }

  function reportError({ call, stream }: LiveCall, error: PlatformError): void {
    stream?.close();
    if (call.isSettled) return;
    const { requestId, traceId, tenantId, handler } = call.request;
    const stack = (error.cause as Error | undefined)?.stack;
    sink.write({ pluginId, requestId, traceId, tenantId }, 'error', `"${handler}" failed: ${error.message}`, {
      code: error.code,
      ...(typeof error.details.at === 'string' ? { at: error.details.at } : {}),
      ...(stack ? { stack } : {}),
    });
    call.reject(error);
  }

  /** Ends a call; platform calls that the handler did not await are aborted. */
  function settle(entry: LiveCall, run: () => void): boolean {
    entry.stopTimer();
    live.delete(entry.call.request.executionId);
    if (!isStuck()) {
      ending?.stop();
      ending = null;
    }
    try {
      run();
    } catch (error) {
      entry.stream?.close();
      entry.call.reject(error as PlatformError);
    }
    entry.abort?.abort(HANDLER_ENDED);
    endIfAlone();
    deps.onFree(entry.call);
    return true;
  }

  const isStuck = (): boolean => [...live.values()].some((entry) => entry.isStuck);

  /** Gives other calls of the process time to finish. */
  function overrun(entry: LiveCall, reason: EndReason): void {
    entry.isStuck = true;
    ending ??= { reason, stop: systemClock.after(OTHER_CALLS_GRACE_MS, () => endProcess(reason)) };
    endIfAlone();
  }

  function endIfAlone(): void {
    if (ending && [...live.values()].every(({ call }) => call.isSettled)) endProcess(ending.reason);
  }

  /** Rejects the call at once, gives the handler a grace period, then ends its process. */
  function giveUp(entry: LiveCall, error: PlatformError, reason: EndReason): void {
    const { executionId } = entry.call.request;
    entry.call.reject(error);
    entry.stopTimer();
    entry.stream?.close();
    // The handler has finished and only its reader is slow: the process may be serving others.
    if (live.get(executionId) !== entry) return;
    entry.abort?.abort(error);
    send({ type: 'cancel', executionId, reason: error.message });
    entry.stopTimer = systemClock.after(GRACE_MS, () => overrun(entry, reason));
  }

  return {
    get size() {
      return live.size;
    },
    get isStuck() {
      return isStuck();
    },
    take,
    add(call) {
      const { executionId } = call.request;
      if (live.has(executionId)) {
        call.reject(new PlatformError('CONFLICT', `The execution ${executionId} is already running.`));
        return false;
      }
      const entry: LiveCall = { call, stopTimer: () => {} };
      // Loading the plugin's code has a limit too, though it is not the handler's time.
      limitTime(entry, call.onBegun ? Math.max(call.timeoutMs, LOAD_MS) : call.timeoutMs);
      live.set(executionId, entry);
      call.cancelWith(() => giveUp(entry, cancelled(call.request), { kind: 'cancelled' }));
      return true;
    },
    failAll(exit) {
      const entries = [...live.values()];
      live.clear();
      ending?.stop();
      // An exit without calls is not worth a warning, unless leftover work of a handler filled the memory.
      if (entries.length === 0 && exit.ended?.kind !== 'memory') return;
      const meta = { exitCode: exit.code, signal: exit.signal, calls: entries.length };
      logger.warn(`A plugin's process ${describeExit(exit).message}`, { pluginId, meta });
      const lost = entries.filter(({ call }) => !call.isSettled);
      const error = lostProcess(exit, pluginId, lost.length > 1);
      for (const entry of entries) {
        entry.stopTimer();
        entry.stream?.close();
        entry.abort?.abort(error);
        entry.call.reject(error);
        deps.onFree(entry.call);
      }
    },
  };
}
