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
  ready({ membership }, resources) {
    membership?.announce(memberUrl('marketplace', resources));
  },
});
