import type { ServiceName } from '../contracts/index.ts';
import { beginDrain, type Http } from '../http/index.ts';
import { usesPostgres } from '../kit/config/store-url.ts';
import { listeningHandle } from '../kit/process/node-internals.ts';
import type { Logger } from '../kit/telemetry/logger.ts';
import type { DaemonDefinition, DaemonServices, Resources } from './define-daemon.ts';
import { type BoundAddress, ListenAddress, LOOPBACK } from './listen-address.ts';
import { listen, listenForMembers, requireFree, urlHost } from './listening.ts';
import { PeerDirectory } from './membership/peer-directory.ts';
import { openLimiters } from './open-limiters.ts';
import type { Listener } from './process-protocol.ts';
import { createServiceHttp } from './service-http.ts';
import { keepSecrets, type StartOptions } from './start-options.ts';
import { openTelemetry, reportStarted, reportStartFailed, type Telemetry } from './telemetry.ts';

export interface RunningDaemon<Services = unknown> {
  name: string;
  /** Address that the service is bound to: `http://<host>:<port>`. */
  url: string;
  /** URL that reaches this process also if several processes share the port. */
  ownUrl: string;
  port: number;
  services: Services;
  logger: Logger;
  /** Listening socket to hand to a successor process. Undefined if several processes share the port. */
  listener: Listener | undefined;
  /** Makes `/ready` answer 503. The service continues to serve requests. */
  becomeUnready(): void;
  /** Refuses new connections, answers requests in flight, then closes the resources of the service. */
  close(): Promise<void>;
}

/**
 * Starts a service in this process. Throws CONFLICT if the address is in use. Also throws the errors of
 * `definition.services`.
 */
export async function startDaemon<Services extends DaemonServices>(
  definition: DaemonDefinition<Services>,
  options: StartOptions,
): Promise<RunningDaemon<Services>> {
  const { name } = definition;
  keepSecrets(options);
  const stack = new AsyncDisposableStack();
  const telemetry = await openTelemetry(name, options, stack);
  const { logger } = telemetry;
  try {
    const opened = await openService(definition, options, telemetry, stack);
    reportStarted(logger, name, opened.url);
    return { name, logger, ...opened, close: () => stack.disposeAsync() };
  } catch (error) {
    reportStartFailed(logger, name, error);
    // The error of the start is reported, even if closing the half-open service fails too.
    await stack
      .disposeAsync()
      .catch((closing: unknown) => logger.error(`${name} could not be closed`, { error: closing }));
    throw error;
  }
}

/** Opens the resources of a service in order and listens. */
async function openService<Services extends DaemonServices>(
  definition: DaemonDefinition<Services>,
  options: StartOptions,
  telemetry: Telemetry,
  stack: AsyncDisposableStack,
): Promise<Omit<RunningDaemon<Services>, 'name' | 'logger' | 'close'>> {
  const { name } = definition;
  const resources = await createResources(name, options, telemetry, stack);
  const directory = await PeerDirectory.open(name, resources, stack);
  const services = await definition.services(resources, stack);
  stack.defer(() => definition.close?.(services));
  const address = options.listen ?? options.config[name];
  let draining = false;
  const http = createServiceHttp({
    ...{ definition, resources, services, listenHost: address.host },
    isDraining: () => draining,
  });
  stack.defer(async () => {
    draining = true;
    void directory.withdraw();
    // Requests and background work drain in parallel, so that background work has as much time as requests.
    beginDrain(http);
    const drained = definition.drain?.(services);
    // Other nodes call this process about its background work, so the listener stays open until that work has ended.
    if (resources.hasOtherNodes) await Promise.allSettled([drained]);
    await Promise.all([http.close(), drained]);
  });
  const bound = await bind(http, { name, address, options });
  resources.address.bind(bound);
  await definition.ready?.(services, resources);
  await directory.announce(services.withdraw);
  const listener = options.portShare ? undefined : listeningHandle(http.server);
  const becomeUnready = (): void => {
    draining = true;
    void directory.withdraw();
  };
  const { port, url, own } = bound;
  return { port, url, ownUrl: `http://${urlHost(own.host)}:${own.port}`, services, listener, becomeUnready };
}

interface BindOptions {
  name: ServiceName;
  address: { host: string; port: number };
  options: StartOptions;
}

/**
 * Listens on the service's port. A process that shares the port also listens on a separate port for calls from other
 * processes.
 */
async function bind(http: Http, { name, address, options }: BindOptions): Promise<BoundAddress> {
  const { portShare, listener, config } = options;
  if (portShare && !portShare.joins) await requireFree(address, name);
  const port = await listen(
    http,
    { ...address, ...(portShare ? { reusePort: true } : { handle: listener }) },
    name,
  );
  const url = `http://${urlHost(address.host)}:${port}`;
  if (!portShare) return { port, url, own: { host: address.host, port, sharesPort: false } };
  // Other machines call this process only if they use the same store.
  const host = usesPostgres(config.store) ? address.host : LOOPBACK;
  return { port, url, own: { host, port: await listenForMembers(http, host), sharesPort: true } };
}

async function createResources(
  name: ServiceName,
  options: StartOptions,
  telemetry: Telemetry,
  stack: AsyncDisposableStack,
): Promise<Resources> {
  const { config, env = {}, portShare, configFile = null } = options;
  const sharesStore = options.sharesStore ?? usesPostgres(config.store);
  // Each process counts for itself, and a restart must not look like a decrease of the sum.
  if (portShare) telemetry.metrics.registry.setDefaultLabels({ process: String(portShare.number) });
  return {
    ...options,
    ...telemetry,
    env,
    configFile,
    hasOtherNodes: sharesStore,
    sharesStore: sharesStore || portShare !== undefined,
    createLimiter: await openLimiters(name, options, telemetry.logger, stack),
    address: new ListenAddress(),
  };
}
