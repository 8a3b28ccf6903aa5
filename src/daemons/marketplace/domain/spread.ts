import { rereadPlugins, type ServiceName } from '../../../contracts/index.ts';
import { createClient, serviceHeaders } from '../../../http/index.ts';
import { seconds } from '../../../kit/duration.ts';
import type { Logger } from '../../../kit/logger.ts';
import type { Resources } from '../../define-daemon.ts';
import type { PluginRuntime } from '../../plugin-runtime/runtime.ts';

/**
 * Settles once every service that runs has read the plugins anew, so that whoever is told of a change may count on it in
 * the next call. Never throws: the change has happened, and a service that does not answer looks for itself.
 */
export type Spread = () => Promise<void>;

/** Many times what reading takes: only a service that hangs is not waited for. */
const PATIENCE_MS = seconds(5);
/** The gateway comes last: it asks the workflow service which webhooks start workflows. */
const ORDER: ReadonlyArray<readonly ServiceName[]> = [['rest', 'workflow'], ['gateway']];

export function createSpread(
  { peers, keys, logger }: Pick<Resources, 'peers' | 'keys' | 'logger'>,
  own: Pick<PluginRuntime, 'upToDate'>,
): Spread {
  const headers = () => serviceHeaders(keys.internalSecret);

  async function ask(name: ServiceName): Promise<void> {
    const url = peers.known()[name];
    // One that has not started yet reads what it finds then.
    if (url === undefined) return;
    const client = createClient({ url, peer: name, headers, timeoutMs: PATIENCE_MS });
    await client.call(rereadPlugins).catch((error) => tellLate(logger, name, error));
  }
  return async () => {
    const here = own.upToDate();
    for (const names of ORDER) await Promise.all(names.map(ask));
    await here;
  };
}

function tellLate(logger: Logger, name: ServiceName, error: unknown): void {
  logger.warn(`The ${name} service has not said that it read the plugins anew; it does as soon as it can`, {
    error,
  });
}
