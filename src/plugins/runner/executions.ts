import { setImmediate as turn } from 'node:timers/promises';
import type { Channel } from './channel.ts';
import { createContext } from './context.ts';
import { describeHandler } from './describe.ts';
import { RunnerFailure, toFrameError } from './failure.ts';
import { type Handler, loadHandler, requireHost } from './handler.ts';
import { createLogWriter, createPluginLog, currentExecution } from './log.ts';
import { createPlatformCalls, type PlatformCalls } from './platform-calls.ts';
import type { CancelFrame, ExecuteFrame, InitFrame } from './protocol.ts';
import { resultFrame, toCommandResult } from './result.ts';
import { createSchemaChecks } from './schemas.ts';
import { createStreams, type Streams, streamOf } from './stream.ts';
import { runWorkflow, workflowLink } from './workflow/index.ts';

export interface Executions {
  calls: PlatformCalls;
  streams: Streams;
  write: ReturnType<typeof createLogWriter>;
  /** `chars`: length of the received frame. */
  execute(frame: ExecuteFrame, chars: number): Promise<void>;
  cancel(frame: CancelFrame): void;
}

/** Runs handlers concurrently; each execution ends in exactly one result or error frame. */
export function createExecutions(init: InitFrame, channel: Channel): Executions {
  const { plugin, limits } = init;
  const live = new Map<string, AbortController>();
  const calls = createPlatformCalls(channel, limits, (executionId) => live.has(executionId));
  const write = createLogWriter(channel, limits);
  const streams = createStreams(channel);
  const log = createPluginLog(write);
  const env = pickEnv(init.env);
  const schemas = createSchemaChecks(plugin.root);
  const handlers = new Map<string, Promise<Handler>>();
  let announced = false;

  function handlerFor(ref: string): Promise<Handler> {
    let handler = handlers.get(ref);
    if (!handler) {
      const own = describeHandler(plugin.root, ref);
      handler = own ? Promise.resolve(own) : loadHandler(plugin.root, ref);
      handler.catch(() => handlers.delete(ref));
      handlers.set(ref, handler);
    }
    return handler;
  }

  async function run(
    { executionId, request, streams: takesStreams, tellsBegun }: ExecuteFrame,
    signal: AbortSignal,
    chars: number,
  ): Promise<string> {
    const handler = await handlerFor(request.handler);
    if (!announced) {
      announced = true;
      channel.send({ type: 'loaded' });
    }
    requireHost(handler, request);
    const input = await schemas.input(handler, request);
    const context = createContext({ executionId, request, plugin, signal, log, env, calls });
    if (tellsBegun) channel.send({ type: 'begun', executionId });
    const returned = handler.workflow
      ? await runWorkflow(handler, context, input, workflowLink(request, signal, calls, executionId))
      : await handler.execute(context, input);
    const stream = streamOf(returned);
    if (stream && !takesStreams) throw noStreams(request.host);
    if (stream) {
      await streams.send(executionId, stream, signal);
      return resultFrame(executionId, { exitCode: 0 }, limits.resultBytes);
    }
    const result = toCommandResult(returned);
    if (result.exitCode === 0 && (request.schemas.output || handler.output)) {
      result.result = await schemas.output(handler, request, result.result);
    }
    return resultFrame(executionId, result, limits.resultBytes, chars);
  }

  return {
    calls,
    streams,
    write,
    async execute(frame, chars) {
      const { executionId } = frame;
      const controller = new AbortController();
      live.set(executionId, controller);
      let text: string;
      try {
        text = await currentExecution.run(executionId, () => run(frame, controller.signal, chars));
      } catch (thrown) {
        text = JSON.stringify({ type: 'error', executionId, error: toFrameError(thrown, plugin.root) });
      }
      // An unhandled rejection surfaces before the next turn; it must fail the call that caused it, not a
      // later one.
      await turn();
      live.delete(executionId);
      calls.forget(executionId);
      channel.sendText(text);
    },
    cancel({ executionId, reason }) {
      live.get(executionId)?.abort(new DOMException(reason, 'AbortError'));
    },
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
