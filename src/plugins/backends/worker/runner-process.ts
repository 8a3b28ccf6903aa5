import { pathToFileURL } from 'node:url';
import type { ExecutionRequest } from '../../../contracts/index.ts';
import { entryFile } from '../../../kit/files/paths.ts';
import type { Logger } from '../../../kit/telemetry/logger.ts';
import { type Clock, systemClock } from '../../../kit/time/clock.ts';
import type { PlatformServices } from '../../execution.ts';
import { PROTOCOL_VERSION, type RunnerLimits } from '../../runner/protocol.ts';
import { grantedNames } from '../../sandbox/index.ts';
import type { PluginLogSink } from '../../services/log.ts';
import type { SourceCode } from '../../source-code.ts';
import type { Call } from './call.ts';
import type { EndReason, ProcessExit } from './exit-reason.ts';
import { openFrameChannel } from './frame-channel.ts';
import { asFrame, type RawFrame, readText } from './frames.ts';
import { LiveCalls } from './live-calls.ts';
import { createMemoryWatch } from './memory.ts';
import type { SpawnEvents, SpawnedRunner } from './spawn-runner.ts';

/** Time until the runner is ready; plugin code loads later, within the call's timeout. */
export const START_MS = 15_000;
/** Grace period for a process that was asked to exit. */
const LEAVE_MS = 1000;

export interface RunnerProcessDeps {
  /** Starts the sandboxed process; all later communication uses its channel. */
  spawn(events: SpawnEvents): SpawnedRunner;
  plugin: ExecutionRequest['plugin'];
  permissions: ExecutionRequest['permissions'];
  memoryMb: number;
  limits: RunnerLimits;
  services: PlatformServices;
  sink: PluginLogSink;
  logger: Logger;
  clock: Clock;
  /** Modules to run instead of those on disk. */
  code: SourceCode | undefined;
}

export interface RunnerProcessEvents {
  onReady(): void;
  /** Called when a call or its process ended and its slot is free. */
  onFree(call: Call): void;
  /** Called when plugin code was loaded successfully. */
  onLoaded(): void;
  /** Called when the process has ended and its calls were rejected. */
  onExit(exit: ProcessExit): void;
}

export interface RunnerProcess {
  readonly isReady: boolean;
  /** True once it was told to end: it accepts no more calls. */
  readonly isEnding: boolean;
  /** A call did not stop after its timeout: the process accepts no more until it has. */
  readonly isStuck: boolean;
  /** In-flight calls, including timed-out ones that have not stopped yet. */
  readonly load: number;
  readonly pid: number | undefined;
  /** Returns false, and rejects the call, when the execution id is already running. */
  assign(call: Call): boolean;
  end(reason: EndReason): void;
}

/** Starts one sandboxed runner and supervises it until its end. All its frames are untrusted. */
export function startRunnerProcess(deps: RunnerProcessDeps, events: RunnerProcessEvents): RunnerProcess {
  const { plugin, memoryMb, limits, services, sink, logger, clock } = deps;
  const logFields = { pluginId: plugin.id };
  let isReady = false;
  let hadLoaded = false;
  let isGone = false;
  let ended: EndReason | null = null;
  let fatal: ProcessExit['fatal'] = null;
  let inputChars = 0;

  const runner = deps.spawn({
    onLine: (layer, line) => sink.write({ ...logFields, layer }, layer === 'stderr' ? 'warn' : 'info', line),
    onExit: finish,
  });
  const channel = openFrameChannel(runner.channel, limits.frameBytes, {
    onFrame: handle,
    inputChars: () => inputChars,
    onFault: (what) => end({ kind: 'protocol', what }),
  });
  const calls = new LiveCalls({
    ...{ pluginId: plugin.id, services, sink, logger, clock },
    send: channel.send,
    endProcess: end,
    onFree: events.onFree,
  });
  const memory = createMemoryWatch({
    limitMb: memoryMb,
    folders: runner.memoryFolders,
    pid: () => (ended ? undefined : runner.pid),
    isBusy: () => calls.size > 0,
    onOver: (usedMb) => end({ kind: 'memory', usedMb: Math.round(usedMb), limitMb: memoryMb }),
    onFull: () => end({ kind: 'idle' }),
  });
  const stopStartTimer = systemClock.after(START_MS, () => end({ kind: 'start', afterMs: START_MS }));
  channel.send({
    type: 'init',
    protocol: PROTOCOL_VERSION,
    plugin,
    sdk: pathToFileURL(entryFile('sdk')).href,
    env: grantedNames(deps.permissions),
    limits,
    ...(deps.code ? { code: deps.code } : {}),
  });

  /** Returns false for an invalid frame. */
  function handle(frame: RawFrame, length: number): boolean {
    if (frame.type === 'ready') return becomeReady();
    if (frame.type === 'loaded') return becomeLoaded();
    if (frame.type === 'fatal') return noteFatal(frame);
    return calls.take(frame, length);
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
    calls.failAll(exit);
    events.onExit(exit);
  }

  return {
    get isReady() {
      return isReady;
    },
    get isEnding() {
      return ended !== null || isGone;
    },
    get isStuck() {
      return calls.isStuck;
    },
    get load() {
      return calls.size;
    },
    get pid() {
      return runner.pid;
    },
    assign(call) {
      if (!calls.add(call)) return false;
      inputChars = Math.max(calls.size > 1 ? inputChars : 0, call.frame.length);
      channel.sendLine(call.frame);
      memory.start();
      return true;
    },
    end,
  };
}
