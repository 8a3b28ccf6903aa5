import { rereadPlugins, type ServiceName } from '../../../contracts/index.ts';
import { createClient, serviceHeaders } from '../../../http/index.ts';
import type { Logger } from '../../../kit/telemetry/logger.ts';
import { seconds } from '../../../kit/time/duration.ts';
import type { Resources } from '../../define-daemon.ts';
import type { PluginRuntime } from '../../plugin-runtime/runtime.ts';

/**
 * Resolves once every running service has reloaded the plugins. Never throws, because the change is already committed.
 * Unreachable services poll for changes.
 */
export type ReloadBroadcast = () => Promise<void>;

/** This limit is much longer than a reload, so that only a hanging service exceeds the limit. */
const RELOAD_TIMEOUT_MS = seconds(5);
/**
 * The gateway reloads last. During its reload, the gateway calls the workflow service for the list of webhooks that
 * start workflows.
 */
const ORDER: ReadonlyArray<readonly ServiceName[]> = [['rest', 'workflow'], ['gateway']];

export function createReloadBroadcast(
  { peers, keys, logger }: Pick<Resources, 'peers' | 'keys' | 'logger'>,
  own: Pick<PluginRuntime, 'upToDate'>,
): ReloadBroadcast {
  const headers = () => serviceHeaders(keys.internalSecret);

  async function ask(name: ServiceName): Promise<void> {
    const url = peers.known()[name];
    // A service that has not started yet loads the current plugins at its start.
    if (url === undefined) return;
    const client = createClient({ url, peer: name, headers, timeoutMs: RELOAD_TIMEOUT_MS });
    await client.call(rereadPlugins).catch((error) => warnLate(logger, name, error));
  }
  return async () => {
    const here = own.upToDate();
    for (const names of ORDER) await Promise.all(names.map(ask));
    await here;
  };
}

function warnLate(logger: Logger, name: ServiceName, error: unknown): void {
  logger.warn(`The ${name} service has not confirmed the plugin reload; it reloads as soon as it can`, {
    error,
  });
}
