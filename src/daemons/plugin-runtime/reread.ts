import { rereadPlugins } from '../../contracts/index.ts';
import { type Http, mount, upstreamIdentity } from '../../http/index.ts';

/** Resolves once every process of this service on this node runs the plugins in the current lock file. */
export type Reread = () => Promise<void>;

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
