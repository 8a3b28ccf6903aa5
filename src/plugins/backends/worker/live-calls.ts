import type { CommandResult } from '../../../contracts/index.ts';
import { type Clock, systemClock } from '../../../kit/clock.ts';
import { PlatformError } from '../../../kit/errors.ts';
import type { Logger } from '../../../kit/logger.ts';
import type { PlatformCallContext, PlatformServices } from '../../execution.ts';
import type { ToRunner } from '../../runner/protocol.ts';
import type { PluginLogSink } from '../../services/log.ts';
import { type Call, cancelled, timedOut } from './call.ts';
import { createCallRouter } from './call-router.ts';
import { describeExit, type EndReason, lostProcess, type ProcessExit } from './exit-reason.ts';
import { type RawFrame, readCall, readError, readResult, readText } from './frames.ts';
import { type OpenStream, openStream } from './open-stream.ts';

/** Between the abort of `ctx.signal` and the end of the process. */
const GRACE_MS = 500;
/** Then it waits so long for the calls beside it. */
const NEIGHBOUR_GRACE_MS = 10_000;
/** A plugin's code may take so long to load, where that is not counted as the handler's time. */
const LOAD_MS = 15_000;
const MAX_LOG_FRAME_CHARS = 64 * 1024;
/** What platform calls fail of that outlive their handler. */
const OVER = new PlatformError('EXECUTION_ERROR', 'The handler has ended, and did not wait for this call.');

export interface LiveCallsDeps {
  pluginId: string;
  services: PlatformServices;
  sink: PluginLogSink;
  logger: Logger;
  /** Times the calls; what guards this daemon itself runs on real time. */
  clock: Clock;
  send(frame: ToRunner): void;
  endProcess(reason: EndReason): void;
  /** A call ended, or its process did, and its place is free. */
  onFree(call: Call): void;
}

/** The calls that one process works on, those that timed out and have not stopped yet included. */
export interface LiveCalls {
  readonly size: number;
  /** A call does not stop although its time is up: the process takes no more, and ends once the others are done. */
  readonly isStuck: boolean;
  /** False when an execution of that id is there already; the call has been rejected then. */
  add(call: Call): boolean;
  /** Takes a frame about an execution, and its length in characters; false when it meant nothing. */
  take(frame: RawFrame, length: number): boolean;
  /** The process is gone. */
  failAll(exit: ProcessExit): void;
}

interface LiveCall {
  call: Call;
  /** Of its platform calls; made by the first of them. */
  abort?: AbortController;
  stopTimer: () => void;
  hasBegun?: true;
  /** It was given up and has not stopped within the grace. */
  isStuck?: true;
  /** Once the handler has returned a stream. */
  stream?: OpenStream;
}

/** Times the calls of one process, and reads what it says of them, which is untrusted. */
export function createLiveCalls(deps: LiveCallsDeps): LiveCalls {
  const { pluginId, services, sink, logger, clock, send, endProcess } = deps;
  const live = new Map<string, LiveCall>();
  /** The end of the process that stuck calls have brought about. */
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

  /** The handler's time begins; a second frame prolongs nothing. */
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
    // A call that timed out has no say any more, though its code may still run for a moment.
    if (!call || entry.call.isSettled) return false;
    router.handle(call, contextOf(entry));
    return true;
  }

  function beginStream(frame: RawFrame, entry: LiveCall): boolean {
    const { call } = entry;
    if (!call.stream || entry.stream || call.isSettled) return false;
    const { executionId } = call.request;
    // From here on the clock that counts is the stream's.
    entry.stopTimer();
    const opened = openStream(readText(frame.contentType, 512), {
      sink: call.stream,
      clock,
      idleMs: call.timeoutMs,
      pull: (bytes) => send({ type: 'pull', executionId, bytes }),
      onTimeout: () => giveUp(entry, timedOut(call), { kind: 'timeout' }),
    });
    if (!opened) endProcess({ kind: 'protocol', what: 'named a content type that is none' });
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

  /** The end of a stream is told once its last piece was taken; a reader that stalls is not waited for longer than before. */
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

  /** The handler is done; what it asked of the platform and did not wait for is called off. */
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
    entry.abort?.abort(OVER);
    endIfAlone();
    deps.onFree(entry.call);
    return true;
  }

  const isStuck = (): boolean => [...live.values()].some((entry) => entry.isStuck);

  /** The calls beside one that does not stop have a while to finish. */
  function overrun(entry: LiveCall, reason: EndReason): void {
    entry.isStuck = true;
    ending ??= { reason, stop: systemClock.after(NEIGHBOUR_GRACE_MS, () => endProcess(reason)) };
    endIfAlone();
  }

  function endIfAlone(): void {
    if (ending && [...live.values()].every(({ call }) => call.isSettled)) endProcess(ending.reason);
  }

  /** The caller gets its answer at once; the handler gets a moment to stop by itself, then its process goes. */
  function giveUp(entry: LiveCall, error: PlatformError, reason: EndReason): void {
    const { executionId } = entry.call.request;
    entry.call.reject(error);
    entry.stopTimer();
    entry.stream?.close();
    // One whose handler is done only waits for its reader: its process may be at work for others.
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
        call.reject(new PlatformError('CONFLICT', `The execution ${executionId} is running already.`));
        return false;
      }
      const entry: LiveCall = { call, stopTimer: () => {} };
      // Loading the plugin's code is limited too, though it is not the handler's time.
      limitTime(entry, call.onBegun ? Math.max(call.timeoutMs, LOAD_MS) : call.timeoutMs);
      live.set(executionId, entry);
      call.cancelWith(() => giveUp(entry, cancelled(call.request), { kind: 'cancelled' }));
      return true;
    },
    failAll(exit) {
      const entries = [...live.values()];
      live.clear();
      ending?.stop();
      // One that ended between calls matters to nobody, unless what a handler left behind filled its memory.
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
