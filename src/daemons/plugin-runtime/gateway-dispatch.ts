import { type CommandResult, HEADERS, internalDispatch, type PlatformConfig } from '../../contracts/index.ts';
import { createPatientClient, type PatientReply, parseReply, serviceHeaders } from '../../http/index.ts';
import { seconds } from '../../kit/duration.ts';
import { PlatformError } from '../../kit/errors.ts';
import { traceparent } from '../../kit/trace.ts';
import type { ExecutionBackend, StreamSink } from '../../plugins/index.ts';
import type { Resources } from '../define-daemon.ts';

/** The gateway keeps the handler's time, and fetches a plugin for a host that lacks it; this much later it is stuck. */
const GRACE_MS = seconds(90);

/**
 * Plugins that run in containers or on hosts, for the daemons that are not the gateway: it holds the hosts' sockets and
 * signs the containers' tokens. @spec Internal dispatch
 */
export function gatewayDispatch(
  name: Exclude<PlatformConfig['execution']['default'], 'worker'>,
  { peers, keys }: Pick<Resources, 'peers' | 'keys'>,
): ExecutionBackend {
  const client = createPatientClient('gateway');
  return {
    name,
    async run(request, { signal, stream, target, onBegun } = {}) {
      const { plugin, config: _, spanId, ...rest } = request;
      const options = {
        ...(stream ? { streams: true } : {}),
        ...(onBegun ? { tellsBegun: true } : {}),
        ...(target ? { target } : {}),
      };
      try {
        const reply = await client.post(peers.urlOf('gateway'), internalDispatch.path, {
          headers: {
            [HEADERS.internalSecret]: keys.internalSecret,
            // Proves a service of the platform, which records its executions itself.
            ...serviceHeaders(keys.internalSecret),
            ...(spanId === undefined ? {} : { traceparent: traceparent(request.traceId, spanId) }),
          },
          body: { ...rest, plugin: { id: plugin.id }, ...options },
          signal,
          // A caller that times the handler by itself leaves when its time is up.
          patienceMs: onBegun ? 0 : request.timeoutMs + GRACE_MS,
          onProcessing: onBegun,
        });
        if (stream && reply.header(HEADERS.stream) !== null) return await passOn(reply, stream);
        const answer = parseReply(await reply.text(), 'gateway');
        return (answer as { result: CommandResult }).result;
      } catch (error) {
        throw unreachable(error, name, plugin.id, signal) ?? error;
      }
    },
    close: client.close,
  };
}

/** The handler's stream, no faster than its reader takes it. */
async function passOn(reply: PatientReply, sink: StreamSink): Promise<CommandResult> {
  sink.start(reply.header('content-type') ?? 'application/octet-stream');
  try {
    for await (const piece of reply.pieces) await sink.write(piece);
  } catch (cause) {
    const executionId = reply.header(HEADERS.stream);
    throw new PlatformError(
      'EXECUTION_ERROR',
      `The stream of execution ${executionId} broke off; the gateway's log says why.`,
      { details: { executionId }, cause },
    );
  }
  return { exitCode: 0 };
}

/** The gateway is not there, or went away while it had the call. */
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
    `The plugin ${pluginId} runs through the gateway (execution.plugins["${pluginId}"].backend is "${name}"), and that cannot be reached: ${thrown.message}`,
    { details: { pluginId, backend: name }, cause: thrown },
  );
}
