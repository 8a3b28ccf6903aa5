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
import { AheadCalls } from './ahead-calls.ts';
import type { Call } from './call.ts';
import { type EndReason, lostProcess, type ProcessExit } from './exit-reason.ts';
import { type FrameChannel, openFrameChannel } from './frame-channel.ts';
import { asFrame, type RawFrame, readText } from './frames.ts';
import { LiveCalls } from './live-calls.ts';
import { createMemoryWatch, type MemoryWatch } from './memory.ts';
import type { SpawnEvents, SpawnedRunner } from './spawn-runner.ts';

/** Time limit for a new runner process to become ready. Plugin code is loaded later, as part of the first call. */
export const START_MS = 15_000;
/** Grace period for a process to exit by itself after its channel was closed. */
const LEAVE_MS = 1000;

export interface RunnerProcessDeps {
  spawn(events: SpawnEvents): SpawnedRunner;
  plugin: ExecutionRequest['plugin'];
  permissions: ExecutionRequest['permissions'];
  memoryMb: number;
  limits: RunnerLimits;
  services: PlatformServices;
  sink: PluginLogSink;
  logger: Logger;
  clock: Clock;
  /**
   * Source code that was loaded before the plugin's files changed on disk. The runner executes this code instead of the
   * files.
   */
  code: SourceCode | undefined;
}

export interface RunnerProcessEvents {
  onReady(): void;
  /** Called when a call or its process has ended. `tookMs` is the duration, if the untrusted process reports one. */
  onFree(call: Call, tookMs?: number): void;
  /** Callback that is called when a call that was sent ahead starts. */
  onStarted?(call: Call): void;
  /** Callback that is called when a call that was sent ahead was returned, or has failed before its start was known. */
  onReturned?(call: Call): void;
  onLoaded(): void;
  /** Callback that is called after the process has ended and all its calls were rejected. */
  onExit(exit: ProcessExit): void;
}

/** A sandboxed runner process. The constructor starts the process. All frames from the process are untrusted. */
export class RunnerProcess {
  readonly #deps: RunnerProcessDeps;
  readonly #events: RunnerProcessEvents;
  readonly #runner: SpawnedRunner;
  readonly #channel: FrameChannel;
  readonly #calls: LiveCalls;
  readonly #ahead: AheadCalls;
  readonly #memory: MemoryWatch;
  readonly #stopStartTimer: () => void;
  #isReady = false;
  #hadLoaded = false;
  #isGone = false;
  #ended: EndReason | null = null;
  #fatal: ProcessExit['fatal'] = null;
  #inputChars = 0;
  /** Time at which the latest call started, by `performance.now()`. */
  #startedAt = 0;
  /** Time at which the latest call ended, by `performance.now()`. Zero before the first end. */
  #freeAt = 0;

  constructor(deps: RunnerProcessDeps, events: RunnerProcessEvents) {
    const { plugin, services, sink, logger, clock } = deps;
    this.#deps = deps;
    this.#events = events;
    this.#runner = deps.spawn({
      onLine: (layer, line) =>
        sink.write({ pluginId: plugin.id, layer }, layer === 'stderr' ? 'warn' : 'info', line),
      onExit: (code, signal, error) => this.#finish(code, signal, error),
    });
    this.#channel = openFrameChannel(this.#runner.channel, deps.limits.frameBytes, {
      onFrame: (frame, length) => this.#handle(frame, length),
      inputChars: () => this.#inputChars,
      onFault: (what) => this.end({ kind: 'protocol', what }),
    });
    this.#calls = new LiveCalls({
      ...{ pluginId: plugin.id, services, sink, logger, clock },
      send: this.#channel.send,
      endProcess: (reason) => this.end(reason),
      onFree: (call, tookMs) => {
        this.#freeAt = performance.now();
        events.onFree(call, tookMs);
      },
    });
    this.#ahead = new AheadCalls(this.#channel.send);
    this.#memory = this.#watchMemory();
    this.#stopStartTimer = systemClock.after(START_MS, () => this.end({ kind: 'start', afterMs: START_MS }));
    this.#sendInit();
  }

  get isReady(): boolean {
    return this.#isReady;
  }

  /** Returns whether the process has ended or is being stopped. Such a process accepts no more calls. */
  get isEnding(): boolean {
    return this.#ended !== null || this.#isGone;
  }

  /**
   * Returns whether a handler still runs at the end of its grace period after an abort. If so, the process accepts no
   * more calls.
   */
  get isStuck(): boolean {
    return this.#calls.isStuck;
  }

  /** Number of calls, including calls that were sent ahead and aborted calls whose handlers still run. */
  get load(): number {
    return this.#calls.size + this.#ahead.size;
  }

  /** Running calls and calls that were sent ahead. */
  get calls(): Call[] {
    return [...this.#calls.all, ...this.#ahead.calls];
  }

  /** Time since the latest call started, in ms. */
  get runningMs(): number {
    return performance.now() - this.#startedAt;
  }

  /** Time by `performance.now()` since which the process should start a call that was sent ahead, if any. */
  get idleSince(): number | undefined {
    return this.#calls.size === 0 && this.#ahead.size > 0 ? this.#freeAt : undefined;
  }

  /** Whether a call has ended here. Until then, the process may load code for a long time. */
  get isWarm(): boolean {
    return this.#freeAt > 0;
  }

  get pid(): number | undefined {
    return this.#runner.pid;
  }

  /**
   * Assigns a call to the process. Rejects the call and returns false if a call with the same execution id is running.
   */
  assign(call: Call): boolean {
    if (!this.#calls.add(call)) return false;
    this.#channel.sendLine(call.frame);
    this.#noteStart(call);
    return true;
  }

  /** Sends a call that starts when no other call runs. Until then, the call has no time limit here. */
  assignAhead(call: Call): void {
    this.#ahead.add(call);
    // The frame is a JSON object, to which the field is added.
    this.#channel.sendLine(`{"ahead":true,${call.frame.slice(1)}`);
  }

  /** Requests a call back that was sent ahead. `onStarted` or `onReturned` is called when its outcome is known. */
  recall(call: Call): void {
    this.#ahead.recall(call);
  }

  #noteStart(call: Call): void {
    this.#startedAt = performance.now();
    this.#inputChars = Math.max(this.#calls.size > 1 ? this.#inputChars : 0, call.frame.length);
    this.#memory.start();
  }

  end(reason: EndReason): void {
    if (this.isEnding) return;
    this.#ended = reason;
    this.#channel.stopSending();
    if (reason.kind === 'idle') {
      this.#runner.leave();
      systemClock.after(LEAVE_MS, () => this.#runner.kill());
    } else this.#runner.kill();
  }

  #watchMemory(): MemoryWatch {
    const limitMb = this.#deps.memoryMb;
    return createMemoryWatch({
      limitMb,
      folders: this.#runner.memoryFolders,
      pid: () => (this.#ended ? undefined : this.#runner.pid),
      isBusy: () => this.load > 0,
      hasChildren: Boolean(this.#deps.permissions.platform?.childProcess),
      onOver: (usedMb) => this.end({ kind: 'memory', usedMb: Math.round(usedMb), limitMb }),
      onManyChildren: (max) => this.end({ kind: 'children', max }),
      onFull: () => this.end({ kind: 'idle' }),
    });
  }

  #sendInit(): void {
    const { plugin, permissions, limits, code } = this.#deps;
    this.#channel.send({
      type: 'init',
      protocol: PROTOCOL_VERSION,
      plugin,
      sdk: pathToFileURL(entryFile('sdk')).href,
      env: grantedNames(permissions),
      limits,
      ...(code ? { code } : {}),
    });
  }

  /** Processes a frame from the runner. Returns false if the frame is invalid. */
  #handle(frame: RawFrame, length: number): boolean {
    if (frame.type === 'ready') return this.#becomeReady();
    if (frame.type === 'loaded') return this.#becomeLoaded();
    if (frame.type === 'fatal') return this.#noteFatal(frame);
    if (frame.type === 'returned') return this.#takeReturned(frame.executionId);
    // A log line does not report a start. Code that an earlier execution with the same id left running can write it.
    const isStart = this.#ahead.size > 0 && frame.type !== 'log';
    const started = isStart ? this.#ahead.remove(frame.executionId) : undefined;
    if (started) this.#start(started);
    if (started && frame.type === 'started') return true;
    return this.#calls.take(frame, length);
  }

  #start(call: Call): void {
    // The call then counts as lost, because its code might run.
    if (this.#calls.size > 0) this.end({ kind: 'protocol', what: 'started a call while another one ran' });
    this.#calls.add(call);
    this.#noteStart(call);
    this.#events.onStarted?.(call);
  }

  #takeReturned(executionId: unknown): boolean {
    const call = this.#ahead.removeRecalled(executionId);
    if (call) this.#events.onReturned?.(call);
    // Plugin code could otherwise make a call run in two processes.
    else this.end({ kind: 'protocol', what: 'returned a call that was not recalled' });
    return call !== undefined;
  }

  #becomeReady(): boolean {
    if (this.#isReady) return false;
    this.#isReady = true;
    this.#stopStartTimer();
    this.#events.onReady();
    return true;
  }

  #becomeLoaded(): boolean {
    if (this.#hadLoaded) return false;
    this.#hadLoaded = true;
    this.#events.onLoaded();
    return true;
  }

  #noteFatal(frame: RawFrame): boolean {
    if (this.#fatal) return false;
    const error = asFrame(frame.error);
    const fatal = { reason: readText(frame.reason, 64), message: readText(error?.message) };
    this.#fatal = fatal;
    const { plugin, sink } = this.#deps;
    sink.write({ pluginId: plugin.id }, 'error', `${fatal.reason}: ${fatal.message}`, {
      stack: readText(error?.stack, 8000),
    });
    return true;
  }

  #finish(code: number | null, signal: string | null, error?: Error): void {
    const { plugin, logger, memoryMb } = this.#deps;
    this.#isGone = true;
    this.#stopStartTimer();
    this.#memory.stop();
    if (error) logger.error('A plugin process could not be started', { pluginId: plugin.id, error });
    const exit: ProcessExit = {
      code,
      signal,
      ended: this.#ended,
      fatal: this.#fatal,
      stderr: error ? error.message : this.#runner.stderrTail(),
      memoryMb,
      wasReady: this.#isReady,
      hadLoaded: this.#hadLoaded,
    };
    this.#calls.failAll(exit);
    for (const call of this.#ahead.calls) {
      this.#ahead.remove(call.request.executionId);
      // If frames were lost, the call might have started.
      if (!this.#channel.isReadToEnd) call.reject(lostProcess(exit, plugin.id, true));
      this.#events.onReturned?.(call);
    }
    this.#events.onExit(exit);
  }
}
