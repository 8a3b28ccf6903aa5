import { rereadPlugins } from '../../contracts/index.ts';
import { type Http, mount, upstreamIdentity } from '../../http/index.ts';
import type { ProcessGroup } from '../group/process-group.ts';
import type { PluginRuntime } from './runtime.ts';

/** Settles once every process of this daemon runs the plugins that the lock file names now. */
export type Reread = () => Promise<void>;

const NEWS = 'plugins';

/** `then` is what else a process forgets or looks at again once its plugins are read. */
export function createReread(
  plugins: Pick<PluginRuntime, 'upToDate'>,
  group: ProcessGroup,
  then: () => Promise<void> = async () => {},
): Reread {
  async function rereadHere(): Promise<void> {
    await plugins.upToDate();
    await then();
  }
  group.onNews(NEWS, rereadHere);
  return async () => {
    await Promise.all([rereadHere(), group.announce(NEWS)]);
  };
}

export interface RereadServices {
  reread: Reread;
  internalSecret: string;
}

/**
 * What the marketplace asks before it says that a change is done. It shows the service key, also where direct calls are
 * taken: nobody else has a reason to have folders read. @spec docs/decisions/0050
 */
export function rereadRoutes(http: Http, { reread, internalSecret }: RereadServices): void {
  const identify = upstreamIdentity({ internalSecret, mode: 'required', logger: http.kit.logger });
  mount(http, rereadPlugins, { auth: 'open' }, async ({ request }) => {
    await identify(request);
    await reread();
    return { reread: true as const };
  });
}
