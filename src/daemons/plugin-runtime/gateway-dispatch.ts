import {
  type CommandResult,
  type ExecutionRequest,
  HEADERS,
  internalDispatch,
  type PlatformConfig,
} from '../../contracts/index.ts';
import { createLongCallClient, type LongCallReply, parseReply, serviceHeaders } from '../../http/index.ts';
import { PlatformError } from '../../kit/errors/errors.ts';
import { traceparent } from '../../kit/telemetry/trace.ts';
import { seconds } from '../../kit/time/duration.ts';
import type { ExecutionBackend, RunOptions, StreamSink } from '../../plugins/index.ts';
import type { Resources } from '../define-daemon.ts';

/**
 * Extra time after the handler's timeout before the gateway counts as hung. The gateway might first have to transfer
 * the plugin to a host.
 */
const GRACE_MS = seconds(90);

type BackendName = Exclude<PlatformConfig['execution']['default'], 'worker'>;

/**
 * Runs an execution through the gateway at a URL. `headers` are sent in addition to the headers of every service call.
 */
export interface DispatchClient {
  run(
    call: { urlOf: () => string; backend: BackendName; headers?: Record<string, string> },
    request: ExecutionRequest,
    options: RunOptions,
  ): Promise<CommandResult>;
  close(): Promise<void>;
}

/**
 * Runs plugins in containers or on hosts through the gateway. Only the gateway has the hosts' sockets and can sign
 * container tokens. @spec Internal dispatch
 */
export function gatewayDispatch(
  name: BackendName,
  { peers, keys }: Pick<Resources, 'peers' | 'keys'>,
): ExecutionBackend {
  const { run, close } = createDispatchClient(keys.internalSecret);
  return {
    name,
    run: async (request, options = {}) =>
      run({ urlOf: () => peers.urlOf('gateway'), backend: name }, request, options),
    close,
  };
}

export function createDispatchClient(internalSecret: string): DispatchClient {
  const client = createLongCallClient('gateway');
  return {
    async run({ urlOf, backend, headers = {} }, request, { signal, stream, target, onBegun }) {
      const { plugin, config: _, spanId, ...rest } = request;
      const options = {
        ...(stream ? { streams: true } : {}),
        ...(onBegun ? { tellsBegun: true } : {}),
        ...(target ? { target } : {}),
      };
      try {
        const reply = await client.post(urlOf(), internalDispatch.path, {
          headers: {
            [HEADERS.internalSecret]: internalSecret,
            // This header states that the calling service records the execution.
            ...serviceHeaders(internalSecret),
            ...(spanId === undefined ? {} : { traceparent: traceparent(request.traceId, spanId) }),
            ...headers,
          },
          body: { ...rest, plugin: { id: plugin.id }, ...options },
          signal,
          // With `onBegun`, the caller enforces the timeout and aborts the call.
          idleTimeoutMs: onBegun ? 0 : request.timeoutMs + GRACE_MS,
          onProcessing: onBegun,
        });
        if (stream && reply.header(HEADERS.stream) !== null) return await passOn(reply, stream);
        const answer = parseReply(await reply.text(), 'gateway');
        return (answer as { result: CommandResult }).result;
      } catch (error) {
        throw unreachable(error, backend, plugin.id, signal) ?? error;
      }
    },
    close: client.close,
  };
}

/** Forwards the handler's stream at the speed at which the reader consumes the chunks. */
async function passOn(reply: LongCallReply, sink: StreamSink): Promise<CommandResult> {
  sink.start(reply.header('content-type') ?? 'application/octet-stream');
  try {
    for await (const piece of reply.pieces) await sink.write(piece);
  } catch (cause) {
    const executionId = reply.header(HEADERS.stream);
    throw new PlatformError(
      'EXECUTION_ERROR',
      `The stream of execution ${executionId} was interrupted; see the gateway's log for the cause.`,
      { details: { executionId }, cause },
    );
  }
  return { exitCode: 0 };
}

/** Converts UPSTREAM_UNAVAILABLE of the gateway to the error of the execution. Returns undefined for other errors. */
function unreachable(
  thrown: unknown,
  name: ExecutionBackend['name'],
  pluginId: string,
  signal: AbortSignal | undefined,
): PlatformError | undefined {
  if (!(thrown instanceof PlatformError) || thrown.code !== 'UPSTREAM_UNAVAILABLE') return undefined;
  if (signal?.aborted) {
    return new PlatformError('EXECUTION_ERROR', 'The call was cancelled by its caller.', {
      details: { reason: 'cancelled' },
    });
  }
  return new PlatformError(
    name === 'host' ? 'HOST_UNAVAILABLE' : 'SANDBOX_ERROR',
    `The plugin ${pluginId} runs through the gateway (execution.plugins["${pluginId}"].backend is "${name}"), which cannot be reached: ${thrown.message}`,
    { details: { pluginId, backend: name }, cause: thrown },
  );
}
