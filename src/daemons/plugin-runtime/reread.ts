import { rereadPlugins } from '../../contracts/index.ts';
import { type Http, mount, upstreamIdentity } from '../../http/index.ts';

/** Resolves once every process of this service on this node runs the plugins of the current lock file. */
export type Reread = () => Promise<void>;

export interface RereadServices {
  reread: Reread;
  internalSecret: string;
}

/**
 * Reloads the plugins. The marketplace calls this route before confirming a change. No other client needs this route,
 * so the service key is always required. @spec docs/decisions/0050
 */
export function rereadRoutes(http: Http, { reread, internalSecret }: RereadServices): void {
  const identify = upstreamIdentity({ internalSecret, mode: 'required', logger: http.kit.logger });
  mount(http, rereadPlugins, { auth: 'open' }, async ({ request }) => {
    await identify(request);
    await reread();
    return { reread: true as const };
  });
}
