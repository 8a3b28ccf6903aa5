import { apiHealth, apiReady } from '../../contracts/index.ts';
import { defineDaemon } from '../define-daemon.ts';
import { memberUrl } from '../membership/member-url.ts';
import { rereadRoutes } from '../plugin-runtime/reread.ts';
import { analyticsRoutes } from './routes/analytics.ts';
import { catalogueRoutes } from './routes/catalogue.ts';
import { commandRoutes } from './routes/commands.ts';
import { forwardedRoutes } from './routes/forwarded.ts';
import { logRoutes } from './routes/logs.ts';
import { pluginRoutes } from './routes/plugins.ts';
import { restServices } from './services.ts';

/** The platform's REST API, including plugin routes. @spec What the service does; Plugin routes */
export const rest = defineDaemon({
  name: 'rest',
  defaultPort: 5050,
  services: restServices,
  standard: { health: [apiHealth], ready: [apiReady], metricsPaths: ['/metrics', '/api/v1/metrics'] },
  routes: [
    forwardedRoutes,
    commandRoutes,
    pluginRoutes,
    rereadRoutes,
    catalogueRoutes,
    logRoutes,
    analyticsRoutes,
  ],
  ready({ membership }, resources) {
    membership?.announce(memberUrl('rest', resources));
  },
});
