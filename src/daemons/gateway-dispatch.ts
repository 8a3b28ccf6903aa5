import { HEADERS, internalDispatch, type PlatformConfig } from '../contracts/index.ts';
import { createClient } from '../http/index.ts';
import { seconds } from '../kit/duration.ts';
import { PlatformError } from '../kit/errors.ts';
import type { ExecutionBackend } from '../plugins/index.ts';
import type { Resources } from './define-daemon.ts';

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
  return {
    name,
    async run(request, { signal, target } = {}) {
      const { plugin, config: _, ...rest } = request;
      const client = createClient({
        url: () => peers.urlOf('gateway'),
        peer: 'gateway',
        timeoutMs: request.timeoutMs + GRACE_MS,
      });
      const headers = { [HEADERS.internalSecret]: keys.internalSecret };
      const body = { ...rest, plugin: { id: plugin.id }, ...(target ? { target } : {}) };
      const options = { headers, ...(signal ? { signal } : {}) };
      try {
        return (await client.call(internalDispatch, { body }, options)).result;
      } catch (error) {
        throw unreachable(error, name, plugin.id, signal) ?? error;
      }
    },
    async close() {},
  };
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
