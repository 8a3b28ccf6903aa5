import { usesPostgres } from '../kit/config/store-url.ts';
import type { PlatformError } from '../kit/errors/errors.ts';
import { listeningHandle } from '../kit/process/node-internals.ts';
import type { Logger } from '../kit/telemetry/logger.ts';
import type { DaemonDefinition, DaemonServices, Resources } from './define-daemon.ts';
import { createGroup } from './group/create-group.ts';
import { shareMetrics } from './group/shared-metrics.ts';
import { ListenAddress } from './listen-address.ts';
import { listen, requireFree, urlHost } from './listening.ts';
import { openLimiters } from './open-limiters.ts';
import type { Listener } from './process-protocol.ts';
import { createServiceHttp } from './service-http.ts';
import { keepSecrets, type StartOptions, siblingStart } from './start-options.ts';
import { openTelemetry, reportStarted, reportStartFailed, type Telemetry } from './telemetry.ts';

export interface RunningDaemon<Services = unknown> {
  name: string;
  /** Address that the service is bound to: `http://<host>:<port>`. */
  url: string;
  port: number;
  services: Services;
  logger: Logger;
  /** Listening socket to hand to a successor process. Undefined if several processes share the port. */
  listener: Listener | undefined;
  /** Makes `/ready` answer 503 in all processes of the service, which continue to serve requests. */
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

/** Topic of the message that announces to the other processes that the service is about to stop. */
const DRAINING = 'draining';

/** Opens the resources of a service in order and listens. */
async function openService<Services extends DaemonServices>(
  definition: DaemonDefinition<Services>,
  options: StartOptions,
  telemetry: Telemetry,
  stack: AsyncDisposableStack,
): Promise<Omit<RunningDaemon<Services>, 'name' | 'logger' | 'close'>> {
  const { name } = definition;
  const { resources, group } = await createResources(definition, options, telemetry, stack);
  const services = await definition.services(resources, stack);
  stack.defer(() => definition.close?.(services));
  if (group.role === 'primary') stack.defer(() => group.ended());
  const address = options.listen ?? options.config[name];
  let draining = false;
  const http = createServiceHttp({
    ...{ definition, resources, services, listenHost: address.host },
    isDraining: () => draining,
  });
  group.onNews(DRAINING, () => {
    draining = true;
  });
  stack.defer(async () => {
    draining = true;
    if (group.role === 'primary') group.stop();
    // Requests and background work drain in parallel, so that background work has as much time as requests.
    await Promise.all([http.close(), definition.drain?.(services)]);
  });
  if (group.role === 'primary') await requireFree(address, name);
  const socket = group.role === 'alone' ? { handle: options.listener } : { reusePort: true };
  const port = await listen(http, { ...address, ...socket }, name);
  const url = `http://${urlHost(address.host)}:${port}`;
  resources.address.bind({ port, url });
  await definition.ready?.(services, resources);
  if (group.role === 'primary') group.start({ host: address.host, port });
  const listener = group.role === 'alone' ? listeningHandle(http.server) : undefined;
  const becomeUnready = (): void => {
    draining = true;
    void group.announce(DRAINING);
  };
  return { url, port, services, listener, becomeUnready };
}

type Group = ReturnType<typeof createGroup>;

async function createResources(
  { name, processes }: Pick<DaemonDefinition, 'name' | 'processes'>,
  options: StartOptions,
  telemetry: Telemetry,
  stack: AsyncDisposableStack,
): Promise<{ resources: Resources; group: Group }> {
  const group = createGroup({
    ...options,
    name,
    size: processes?.(options.config) ?? 1,
    primary: options.primary,
    platform: process.platform,
    describe: () => siblingStart(options),
    onGivenUp: options.onFatal ?? rethrow,
    logger: telemetry.logger,
  });
  shareMetrics(group, telemetry.metrics);
  const resources: Resources = {
    ...options,
    ...telemetry,
    env: options.env ?? {},
    sharesStore: options.sharesStore ?? usesPostgres(options.config.store),
    configFile: options.configFile ?? null,
    group,
    createLimiter: await openLimiters(name, options, { group, logger: telemetry.logger }, stack),
    address: new ListenAddress(),
  };
  return { resources, group };
}

function rethrow(error: PlatformError): never {
  throw error;
}
