import { pathToFileURL } from 'node:url';
import type { CommandResult, ExecutionRequest } from '../../../contracts/index.ts';
import { type Clock, systemClock } from '../../../kit/clock.ts';
import { PlatformError } from '../../../kit/errors.ts';
import type { Logger } from '../../../kit/logger.ts';
import { entryFile } from '../../../kit/paths.ts';
import type { PlatformCallContext, PlatformServices } from '../../execution.ts';
import { PROTOCOL_VERSION, type RunnerLimits } from '../../runner/protocol.ts';
import { grantedNames } from '../../sandbox/index.ts';
import type { PluginLogSink } from '../../services/log.ts';
import { type Call, cancelled, timedOut } from './call.ts';
import { createCallRouter } from './call-router.ts';
import { describeExit, type EndReason, lostProcess, type ProcessExit } from './exit-reason.ts';
import { openFrameChannel } from './frame-channel.ts';
import { asFrame, type RawFrame, readCall, readError, readResult, readText } from './frames.ts';
import { createMemoryWatch } from './memory.ts';
import { type OpenStream, openStream } from './open-stream.ts';
import type { SpawnEvents, SpawnedRunner } from './spawn-runner.ts';

/** From the start of the process until the runner is ready; plugin code comes later, within the call's timeout. */
export const START_MS = 15_000;
/** Between the abort of `ctx.signal` and the end of the process. */
const GRACE_MS = 500;
/** For a process that was asked to leave. */
const LEAVE_MS = 1000;
const MAX_LOG_FRAME_CHARS = 64 * 1024;

export interface RunnerProcessDeps {
  /** Starts the confined process; speaks to it by its channel from then on. */
  spawn(events: SpawnEvents): SpawnedRunner;
  plugin: ExecutionRequest['plugin'];
  permissions: ExecutionRequest['permissions'];
  memoryMb: number;
  limits: RunnerLimits;
  services: PlatformServices;
  sink: PluginLogSink;
  logger: Logger;
  /** Times the calls; what guards this daemon itself runs on real time. */
  clock: Clock;
}

export interface RunnerProcessEvents {
  onReady(): void;
  /** A call ended and its place is free. */
  onFree(): void;
  /** Plugin code was loaded without harm. */
  onLoaded(): void;
  /** The process is gone; its calls have been failed. */
  onExit(exit: ProcessExit): void;
}

export interface RunnerProcess {
  readonly isReady: boolean;
  /** True once it was told to go: it takes no more calls. */
  readonly isEnding: boolean;
  /** Calls it is busy with, those that timed out and have not stopped yet included. */
  readonly load: number;
  readonly pid: number | undefined;
  assign(call: Call): void;
  end(reason: EndReason): void;
}

interface LiveCall {
  call: Call;
  abort: AbortController;
  stopTimer: () => void;
  /** Once the handler has returned a stream. */
  stream?: OpenStream;
}

function stopTimers({ stopTimer, stream }: LiveCall): void {
  stopTimer();
  stream?.close();
}

/** Starts one confined runner and speaks with it. Everything it sends is untrusted. */
export function startRunnerProcess(deps: RunnerProcessDeps, events: RunnerProcessEvents): RunnerProcess {
  const { plugin, memoryMb, limits, services, sink, logger, clock } = deps;
  const logFields = { pluginId: plugin.id };
  const live = new Map<string, LiveCall>();
  let isReady = false;
  let hadLoaded = false;
  let isGone = false;
  let ended: EndReason | null = null;
  let fatal: ProcessExit['fatal'] = null;

  const runner = deps.spawn({
    onLine: (layer, line) => sink.write({ ...logFields, layer }, layer === 'stderr' ? 'warn' : 'info', line),
    onExit: finish,
  });
  const channel = openFrameChannel(runner.channel, limits.frameBytes, {
    onFrame: handle,
    onFault: (what) => end({ kind: 'protocol', what }),
  });
  const memory = createMemoryWatch({
    limitMb: memoryMb,
    pid: () => (ended ? undefined : runner.pid),
    isBusy: () => live.size > 0,
    onOver: (usedMb) => end({ kind: 'memory', usedMb: Math.round(usedMb), limitMb: memoryMb }),
    onFull: () => end({ kind: 'idle' }),
  });
  const router = createCallRouter({ services, logger, reply: (frame) => channel.send(frame) });
  const stopStartTimer = systemClock.after(START_MS, () => end({ kind: 'start', afterMs: START_MS }));
  channel.send({
    type: 'init',
    protocol: PROTOCOL_VERSION,
    plugin,
    sdk: pathToFileURL(entryFile('sdk')).href,
    env: grantedNames(deps.permissions),
    limits,
  });

  /** False when the frame meant nothing. */
  function handle(frame: RawFrame, length: number): boolean {
    if (frame.type === 'ready') return becomeReady();
    if (frame.type === 'loaded') return becomeLoaded();
    if (frame.type === 'fatal') return noteFatal(frame);
    const entry = typeof frame.executionId === 'string' ? live.get(frame.executionId) : undefined;
    if (frame.type === 'log') return writeLog(frame, entry, length);
    if (!entry) return false;
    if (frame.type === 'call') return routeCall(frame, entry);
    if (frame.type === 'stream') return beginStream(frame, entry);
    if (frame.type === 'chunk') return takeChunk(frame, entry);
    if (frame.type === 'result') return settle(entry, () => succeed(entry, readResult(frame)));
    if (frame.type === 'error') return settle(entry, () => reportError(entry, readError(frame)));
    return false;
  }

  function becomeReady(): boolean {
    if (isReady) return false;
    isReady = true;
    stopStartTimer();
    events.onReady();
    return true;
  }

  function becomeLoaded(): boolean {
    if (hadLoaded) return false;
    hadLoaded = true;
    events.onLoaded();
    return true;
  }

  function noteFatal(frame: RawFrame): boolean {
    if (fatal) return false;
    const error = asFrame(frame.error);
    fatal = { reason: readText(frame.reason, 64), message: readText(error?.message) };
    sink.write(logFields, 'error', `${fatal.reason}: ${fatal.message}`, {
      stack: readText(error?.stack, 8000),
    });
    return true;
  }

  function writeLog(frame: RawFrame, entry: LiveCall | undefined, length: number): boolean {
    const meta = length <= MAX_LOG_FRAME_CHARS ? frame.meta : undefined;
    const write = Object.hasOwn(services, 'log') ? services.log?.write : undefined;
    if (entry && write) write(contextOf(entry), [frame.level, frame.message, meta]).catch(() => {});
    else sink.write(logFields, frame.level, frame.message, meta);
    return true;
  }

  function contextOf({ call, abort }: LiveCall): PlatformCallContext {
    return { request: call.request, signal: abort.signal };
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
      pull: (bytes) => channel.send({ type: 'pull', executionId, bytes }),
      onTimeout: () => giveUp(entry, timedOut(call), { kind: 'timeout' }),
    });
    if (!opened) end({ kind: 'protocol', what: 'named a content type that is none' });
    else entry.stream = opened;
    return true;
  }

  function takeChunk(frame: RawFrame, entry: LiveCall): boolean {
    if (!entry.stream || typeof frame.data !== 'string') return false;
    if (entry.call.isSettled) return true;
    if (!entry.stream.take(Buffer.from(frame.data, 'base64')))
      end({ kind: 'protocol', what: 'sent more of a stream than it was asked for' });
    return true;
  }

  /** The end of a stream is told once its last piece was taken. */
  function succeed({ call, stream }: LiveCall, result: CommandResult): void {
    if (!stream) call.resolve(result);
    else
      stream.drained.then(
        () => call.resolve(result),
        () => call.reject(cancelled(call.request)),
      );
  }

  function reportError({ call }: LiveCall, error: PlatformError): void {
    if (call.isSettled) return;
    const { requestId, traceId, tenantId, handler } = call.request;
    const stack = (error.cause as Error | undefined)?.stack;
    sink.write(
      { ...logFields, requestId, traceId, tenantId },
      'error',
      `"${handler}" failed: ${error.message}`,
      { code: error.code, ...(stack ? { stack } : {}) },
    );
    call.reject(error);
  }

  function settle(entry: LiveCall, run: () => void): boolean {
    stopTimers(entry);
    live.delete(entry.call.request.executionId);
    try {
      run();
    } catch (error) {
      entry.call.reject(error as PlatformError);
    }
    events.onFree();
    return true;
  }

  /** The caller gets its answer at once; the handler gets a moment to stop by itself, then its process goes. */
  function giveUp(entry: LiveCall, error: PlatformError, reason: EndReason): void {
    entry.call.reject(error);
    entry.abort.abort(error);
    channel.send({ type: 'cancel', executionId: entry.call.request.executionId, reason: error.message });
    stopTimers(entry);
    entry.stopTimer = systemClock.after(GRACE_MS, () => end(reason));
  }

  function end(reason: EndReason): void {
    if (ended || isGone) return;
    ended = reason;
    if (reason.kind === 'idle') {
      runner.leave();
      systemClock.after(LEAVE_MS, runner.kill);
    } else runner.kill();
  }

  function finish(code: number | null, signal: string | null, error?: Error): void {
    isGone = true;
    stopStartTimer();
    memory.stop();
    if (error) logger.error('A plugin process could not be started', { ...logFields, error });
    const exit: ProcessExit = {
      code,
      signal,
      ended,
      fatal,
      stderr: error ? error.message : runner.stderrTail(),
      memoryMb,
      wasReady: isReady,
      hadLoaded,
    };
    failLiveCalls(exit);
    events.onExit(exit);
  }

  function failLiveCalls(exit: ProcessExit): void {
    const entries = [...live.values()];
    live.clear();
    if (entries.length > 0) {
      const meta = { exitCode: exit.code, signal: exit.signal, calls: entries.length };
      logger.warn(`A plugin's process ${describeExit(exit).message}`, { ...logFields, meta });
    }
    for (const entry of entries) {
      stopTimers(entry);
      entry.abort.abort();
      entry.call.reject(lostProcess(exit, plugin.id));
    }
  }

  return {
    get isReady() {
      return isReady;
    },
    get isEnding() {
      return ended !== null || isGone;
    },
    get load() {
      return live.size;
    },
    get pid() {
      return runner.pid;
    },
    assign(call) {
      const { executionId } = call.request;
      if (live.has(executionId)) {
        return call.reject(new PlatformError('CONFLICT', `The execution ${executionId} is running already.`));
      }
      const entry: LiveCall = { call, abort: new AbortController(), stopTimer: () => {} };
      entry.stopTimer = clock.after(call.timeoutMs, () => giveUp(entry, timedOut(call), { kind: 'timeout' }));
      live.set(executionId, entry);
      call.cancelWith(() => giveUp(entry, cancelled(call.request), { kind: 'cancelled' }));
      channel.sendLine(call.frame);
      memory.start();
    },
    end,
  };
}
