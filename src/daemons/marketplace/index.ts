import { defineDaemon } from '../define-daemon.ts';
import { memberUrl } from '../membership/member-url.ts';
import { pluginCatalogueRoutes } from './routes/plugins.ts';
import { marketplaceServices } from './services.ts';

/** Manages the set of plugins. @spec What the service does: marketplace service */
export const marketplace = defineDaemon({
  name: 'marketplace',
  defaultPort: 5070,
  services: marketplaceServices,
  routes: [pluginCatalogueRoutes],
  async ready({ followNodes, membership }, resources) {
    membership?.announce(memberUrl('marketplace', resources));
    // Services that started before this one have loaded the plugins of an earlier revision.
    await followNodes?.();
  },
});
