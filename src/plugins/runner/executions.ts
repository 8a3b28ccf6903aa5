import { setImmediate as turn } from 'node:timers/promises';
import type { PluginContextV3 } from '../../contracts/index.ts';
import { DESCRIBE_HANDLERS } from '../../contracts/plugin-description.ts';
import type { Channel } from './channel.ts';
import { createContext } from './context.ts';
import { describeHandler } from './describe.ts';
import { RunnerFailure, toFrameError } from './failure.ts';
import { type Handler, loadHandler, requireHost } from './handler.ts';
import { createLogWriter, createPluginLog, currentExecution } from './log.ts';
import { McpTools } from './mcp/mcp-tools.ts';
import { createPlatformCalls, type PlatformCalls } from './platform-calls.ts';
import type { CancelFrame, ExecuteFrame, InitFrame, RecallFrame } from './protocol.ts';
import { resultFrame, toCommandResult } from './result.ts';
import { createSchemaChecks } from './schemas.ts';
import { createStreams, type Streams, streamOf } from './stream.ts';
import { runWorkflow, workflowLink } from './workflow/index.ts';

/** Runs handlers concurrently. Sends exactly one result frame or error frame per execution. */
export class Executions {
  readonly #init: InitFrame;
  readonly #channel: Channel;
  readonly #live = new Map<string, AbortController>();
  /** Executions that were sent ahead and have not started, in the order of their arrival. */
  readonly #held = new Map<string, () => void>();
  readonly calls: PlatformCalls;
  readonly write: ReturnType<typeof createLogWriter>;
  readonly streams: Streams;
  readonly #log: ReturnType<typeof createPluginLog>;
  readonly #env: Readonly<Record<string, string>>;
  readonly #schemas: ReturnType<typeof createSchemaChecks>;
  readonly #handlers = new Map<string, Promise<Handler>>();
  readonly #mcp: McpTools;
  #announced = false;

  constructor(init: InitFrame, channel: Channel) {
    const { limits, plugin } = init;
    this.#init = init;
    this.#channel = channel;
    this.calls = createPlatformCalls(channel, limits, (executionId) => this.#live.has(executionId));
    this.write = createLogWriter(channel, limits);
    this.streams = createStreams(channel);
    this.#log = createPluginLog(this.write);
    this.#env = pickEnv(init.env);
    this.#schemas = createSchemaChecks(plugin.root);
    this.#mcp = new McpTools(plugin.root);
  }

  /** Runs the handler that the frame names, at once or in turn. `chars` is the length of the received frame. */
  accept(frame: ExecuteFrame, chars: number): void {
    if (!frame.ahead || this.#live.size === 0) void this.#perform(frame, chars);
    else this.#held.set(frame.executionId, () => void this.#perform(frame, chars));
  }

  recall({ executionId }: RecallFrame): void {
    if (this.#held.delete(executionId)) this.#channel.send({ type: 'returned', executionId });
  }

  cancel({ executionId, reason }: CancelFrame): void {
    this.#live.get(executionId)?.abort(new DOMException(reason, 'AbortError'));
  }

  async #perform(frame: ExecuteFrame, chars: number): Promise<void> {
    const { plugin } = this.#init;
    const { executionId } = frame;
    const controller = new AbortController();
    this.#live.set(executionId, controller);
    const isFirst = !this.#handlers.has(frame.request.handler);
    const startedAt = performance.now();
    let text: string;
    try {
      text = await currentExecution.run(executionId, () => this.#run(frame, controller.signal, chars));
    } catch (thrown) {
      text = JSON.stringify({ type: 'error', executionId, error: toFrameError(thrown, plugin.root) });
    }
    // Node reports an unhandled rejection before the next event loop turn. The wait ensures that the rejection fails
    // this call instead of a later call.
    await turn();
    this.#live.delete(executionId);
    this.calls.forget(executionId);
    const tookMs = Math.round((performance.now() - startedAt) * 10) / 10;
    this.#channel.queueText(isFirst ? text : `{"tookMs":${tookMs},${text.slice(1)}`);
    // The next execution sends the queued result together with the report of its own start.
    if (!this.#startHeld()) void this.#channel.flush();
  }

  #startHeld(): boolean {
    const [next] = this.#held;
    if (!next || this.#live.size > 0) return false;
    const [executionId, start] = next;
    this.#held.delete(executionId);
    start();
    return true;
  }

  #handlerFor(ref: string): Promise<Handler> {
    const { plugin } = this.#init;
    let handler = this.#handlers.get(ref);
    if (!handler) {
      const own = describeHandler(plugin.root, ref);
      handler = own ? Promise.resolve(own) : loadHandler(plugin.root, ref);
      handler.catch(() => this.#handlers.delete(ref));
      this.#handlers.set(ref, handler);
    }
    return handler;
  }

  async #run(frame: ExecuteFrame, signal: AbortSignal, chars: number): Promise<string> {
    const { executionId, request, streams: takesStreams, tellsBegun } = frame;
    const { plugin, limits } = this.#init;
    const report = startReport(this.#channel, frame);
    if (!this.#handlers.has(request.handler)) await report('started');
    const handler = await this.#handlerFor(request.handler);
    if (!this.#announced) {
      this.#announced = true;
      this.#channel.queueText('{"type":"loaded"}');
    }
    requireHost(handler, request);
    if (request.schemas.input || handler.input || !tellsBegun) await report('started');
    const input = await this.#schemas.input(handler, request);
    const context = createContext({
      executionId,
      request,
      plugin,
      signal,
      log: this.#log,
      env: this.#env,
      calls: this.calls,
    });
    if (tellsBegun) await report('begun');
    const returned = handler.workflow
      ? await runWorkflow(handler, context, input, workflowLink(request, signal, this.calls, executionId))
      : await this.#execute(handler, context, input);
    const stream = streamOf(returned);
    if (stream && !takesStreams) throw noStreams(request.host);
    if (stream) {
      await this.streams.send(executionId, stream, signal);
      return resultFrame(executionId, { exitCode: 0 }, limits.resultBytes);
    }
    const result = toCommandResult(returned);
    if (result.exitCode === 0 && (request.schemas.output || handler.output)) {
      result.result = await this.#schemas.output(handler, request, result.result);
    }
    return resultFrame(executionId, result, limits.resultBytes, chars);
  }

  #execute(handler: Handler, context: PluginContextV3, input: unknown): unknown {
    const call = { context, calls: this.calls };
    if (handler.ref === DESCRIBE_HANDLERS.mcpTools) return this.#mcp.list(call);
    if (handler.mcpTool !== undefined) return this.#mcp.run(handler.mcpTool, input, call);
    return handler.execute(context, input);
  }
}

/**
 * Returns a function that reports the start of an execution and sends all queued frames. It must be called before
 * plugin code runs, because plugin code can block or end the process.
 */
function startReport(
  channel: Channel,
  { executionId, ahead }: ExecuteFrame,
): (type: 'started' | 'begun') => Promise<void> {
  let isDue = ahead === true;
  return async (type) => {
    if (isDue || type === 'begun') channel.queueText(JSON.stringify({ type, executionId }));
    isDue = false;
    const written = channel.flush();
    if (ahead) await written;
  };
}

function noStreams(host: string): RunnerFailure {
  return new RunnerFailure(
    'EXECUTION_ERROR',
    `The handler returned a stream, but only routes may stream; this call has the host "${host}".`,
  );
}

function pickEnv(names: string[]): Readonly<Record<string, string>> {
  const entries = names.flatMap((name) => {
    const value = process.env[name];
    return value === undefined ? [] : [[name, value]];
  });
  return Object.freeze(Object.fromEntries(entries));
}
