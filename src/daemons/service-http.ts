import type { ServiceName } from '../contracts/index.ts';
import {
  createHostCheck,
  createHttp,
  type Http,
  Readiness,
  STANDARD_ROUTES,
  standardRoutes,
  upstreamIdentity,
} from '../http/index.ts';
import type { DaemonDefinition, DaemonServices, Resources } from './define-daemon.ts';

export interface ServiceHttpOptions<Services extends DaemonServices> {
  definition: DaemonDefinition<Services>;
  resources: Resources;
  services: Services;
  listenHost: string;
  isDraining: () => boolean;
}

/** Creates the server of a service with all its routes. The server does not listen yet. */
export function createServiceHttp<Services extends DaemonServices>(
  options: ServiceHttpOptions<Services>,
): Http {
  const { definition, resources, services, isDraining } = options;
  const http = createServer(options);
  standardRoutes(http, {
    ...STANDARD_ROUTES,
    ...definition.standard,
    isDraining,
    readiness: new Readiness({
      ...{ service: definition.name, clock: resources.clock, logger: resources.logger, isDraining },
      probeStore: services.probeStore,
      plugins: services.plugins,
      starting: services.starting,
    }),
    degradations: services.degradations,
  });
  for (const routes of definition.routes) routes(http, services);
  return http;
}

function createServer<Services extends DaemonServices>(options: ServiceHttpOptions<Services>): Http {
  const { definition, resources, services, listenHost } = options;
  const { config, keys, logger, metrics, clock, random, tracer, createLimiter } = resources;
  const { name, listener: createListener, bodyLimitBytes, trustedProxies } = definition;
  return createHttp({
    service: name,
    logger,
    metrics,
    clock,
    random,
    tracer,
    createLimiter,
    drainMs: config[name].drainMs,
    listener: createListener && ((http) => createListener(http, services)),
    authenticate:
      services.authenticate ??
      upstreamIdentity({
        internalSecret: keys.internalSecret,
        mode: config.auth.mode ?? 'optional',
        allowedOrigins: config.gateway.cors.origins,
        logger,
      }),
    ...(bodyLimitBytes ? { bodyLimitBytes: bodyLimitBytes(config) } : {}),
    ...(trustedProxies ? { trustedProxies: trustedProxies(config) } : {}),
    checkHost: createHostCheck({ listenHost, allowedHosts: allowedHosts(name, resources) }),
  });
}

/** Returns the host names that clients are allowed to use in addition to the names of this machine. */
function allowedHosts(name: ServiceName, { config, env, advertise }: Resources): string[] {
  const { allowedHosts, publicUrl } = config.gateway;
  const own = [publicUrl, env.SVC_ADVERTISE_URL, advertise, config.services[name]?.url].flatMap(
    (url) => URL.parse(url ?? '')?.hostname ?? [],
  );
  return [...allowedHosts, ...own];
}
