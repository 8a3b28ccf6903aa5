import { rereadPlugins } from '../../contracts/index.ts';
import { type Http, mount, upstreamIdentity } from '../../http/index.ts';
import type { ProcessGroup } from '../group/process-group.ts';
import type { PluginRuntime } from './runtime.ts';

/** Resolves once every process of this service runs the plugins in the current lock file. */
export type Reread = () => Promise<void>;

const NEWS = 'plugins';

export interface RereadOptions {
  /** Invalidates other caches of a process after its plugins were reloaded. */
  invalidate?: () => Promise<void>;
  /** Announces the reload to other nodes. */
  publish?: (() => Promise<void>) | undefined;
}

export function createReread(
  plugins: Pick<PluginRuntime, 'upToDate'>,
  group: ProcessGroup,
  { invalidate = async () => {}, publish = async () => {} }: RereadOptions = {},
): Reread {
  async function rereadHere(): Promise<void> {
    await plugins.upToDate();
    await invalidate();
  }
  group.onNews(NEWS, rereadHere);
  return async () => {
    await Promise.all([rereadHere(), group.announce(NEWS), publish()]);
  };
}

export interface RereadServices {
  reread: Reread;
  internalSecret: string;
}

/**
 * Reloads the plugins when the marketplace calls this route, before the marketplace confirms a change. The service key
 * is always required, because no other client has a reason to trigger a reload. @spec docs/decisions/0050
 */
export function rereadRoutes(http: Http, { reread, internalSecret }: RereadServices): void {
  const identify = upstreamIdentity({ internalSecret, mode: 'required', logger: http.kit.logger });
  mount(http, rereadPlugins, { auth: 'open' }, async ({ request }) => {
    await identify(request);
    await reread();
    return { reread: true as const };
  });
}
