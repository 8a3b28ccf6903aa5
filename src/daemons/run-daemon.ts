import type { PlatformConfig } from '../contracts/index.ts';
import {
  createHostCheck,
  createHttp,
  type Http,
  STANDARD_ROUTES,
  standardRoutes,
  upstreamIdentity,
} from '../http/index.ts';
import { type Environment, secretValues } from '../kit/config/secret-ref.ts';
import { codeOf, messageOf, type PlatformError } from '../kit/errors/errors.ts';
import { listeningHandle } from '../kit/process/node-internals.ts';
import { serviceKey } from '../kit/security/keys.ts';
import { type Analytics, createAnalytics } from '../kit/telemetry/analytics.ts';
import { createLogger, type Logger, type LogLevel } from '../kit/telemetry/logger.ts';
import { createMetrics, type Metrics } from '../kit/telemetry/metrics.ts';
import type { LineOutput } from '../kit/telemetry/output.ts';
import { keepSecret } from '../kit/telemetry/redact.ts';
import type { OtlpTarget } from '../kit/telemetry/tracer.ts';
import type { DaemonDefinition, DaemonServices, Resources } from './define-daemon.ts';
import { createGroup } from './group/create-group.ts';
import { sharedLimiters } from './group/shared-limiters.ts';
import { shareMetrics } from './group/shared-metrics.ts';
import type { PrimaryChannel } from './group/sibling.ts';
import { listen, requireFree, urlHost } from './listening.ts';
import type { DaemonStart, Listener } from './process-protocol.ts';
import { createStoreMetrics } from './store-metrics.ts';

export interface StartOptions
  extends Pick<
    Resources,
    'config' | 'profile' | 'projectDir' | 'dataDir' | 'keys' | 'operator' | 'clock' | 'random' | 'peers'
  > {
  output: LineOutput;
  /** Default: none. */
  configFile?: string | null;
  logLevel?: LogLevel;
  /** Default: created by the service. Benchmarks pass no-op ones to measure their cost. */
  metrics?: Metrics;
  analytics?: Analytics;
  /** Source of secrets that the config references; default: empty. */
  env?: Environment;
  /** Target of traces; default: none. */
  otlp?: OtlpTarget | undefined;
  /** Answers `ctx.fetch` in tests of plugins. */
  stubFetch?: Resources['stubFetch'];
  onSandbox?: Resources['onSandbox'];
  /** Default: host and port of the service's config section; port 0 uses any free one. */
  listen?: { host: string; port: number };
  /** Listener of a predecessor on the same address, used instead of opening one. */
  listener?: Listener | undefined;
  /** Whether the previous process died of its own fault. */
  hadFault?: boolean | undefined;
  /** Called when an essential part has failed permanently: the caller must close the service. */
  onFatal?: (error: PlatformError) => void;
  /** Set in a process that the service's primary started. */
  primary?: PrimaryChannel;
}

export interface RunningDaemon<Services = unknown> {
  name: string;
  /** `http://<host>:<port>` as bound. */
  url: string;
  port: number;
  services: Services;
  logger: Logger;
  /** For a successor process; undefined if several processes share the port. */
  listener: Listener | undefined;
  /** Refuses new connections, answers requests in flight, then closes the service's parts. */
  close(): Promise<void>;
}

/**
 * Starts a service in this process. Throws CONFLICT when its address is in use, and errors of its services.
 */
export async function startDaemon<Services extends DaemonServices>(
  definition: DaemonDefinition<Services>,
  options: StartOptions,
): Promise<RunningDaemon<Services>> {
  const { name } = definition;
  const { config, clock, random, output } = options;
  keepSecrets(options);
  const logger = createLogger({
    serviceId: name,
    output,
    clock,
    ...(options.logLevel ? { level: options.logLevel } : {}),
  });
  const metrics = options.metrics ?? createMetrics(name, clock);
  createStoreMetrics(metrics, options.dataDir);
  const bound = { port: undefined as number | undefined };
  const boundPort = (): number => {
    if (bound.port === undefined) throw new Error('The port is known once the server listens.');
    return bound.port;
  };
  const analytics = options.analytics ?? createAnalytics({ output, clock, random });
  const tracer = options.otlp
    ? (await import('../kit/telemetry/otlp.ts')).createOtlpTracer({
        ...options.otlp,
        service: name,
        clock,
        logger,
      })
    : undefined;
  const group = createGroup({
    ...options,
    name,
    size: definition.processes?.(config) ?? 1,
    primary: options.primary,
    platform: process.platform,
    describe: () => startOf(options),
    onGivenUp: options.onFatal ?? rethrow,
    logger,
  });
  shareMetrics(group, metrics);
  const createLimiter = sharedLimiters(group, clock);
  const resources: Resources = {
    ...options,
    env: options.env ?? {},
    configFile: options.configFile ?? null,
    logger,
    metrics,
    analytics,
    tracer,
    group,
    createLimiter,
    boundPort,
  };
  let draining = false;
  let services: Services | undefined;
  let http: Http | undefined;

  async function close(): Promise<void> {
    draining = true;
    if (group.role === 'primary') group.stop();
    // In parallel, so that background work has as much time as requests.
    await Promise.all([http?.close(), services && definition.drain?.(services)]);
    if (group.role === 'primary') await group.ended();
    if (services) await definition.close?.(services);
    metrics.close();
    analytics.flush();
    await tracer?.close();
    logger.diagnostic({
      domain: 'daemon',
      event: 'daemon.stopped',
      level: 'info',
      reasonCode: 'SHUTDOWN',
      message: `${name} stopped`,
      outcome: 'succeeded',
    });
    output.flush();
  }

  try {
    services = await definition.services(resources);
    const { bodyLimitBytes, trustedProxies } = definition;
    const { listener: createListener } = definition;
    const built = services;
    http = createHttp({
      service: name,
      logger,
      metrics,
      clock,
      random,
      tracer,
      createLimiter,
      drainMs: config[name].drainMs,
      listener: createListener && ((made) => createListener(made, built)),
      authenticate:
        services.authenticate ??
        upstreamIdentity({
          internalSecret: options.keys.internalSecret,
          mode: config.auth.mode ?? 'optional',
          allowedOrigins: config.gateway.cors.origins,
          logger,
        }),
      ...(bodyLimitBytes ? { bodyLimitBytes: bodyLimitBytes(config) } : {}),
      ...(trustedProxies ? { trustedProxies: trustedProxies(config) } : {}),
      checkHost: createHostCheck({
        listenHost: (options.listen ?? config[name]).host,
        allowedHosts: allowedHosts(config),
      }),
    });
    standardRoutes(http, {
      ...STANDARD_ROUTES,
      ...definition.standard,
      isDraining: () => draining,
      degradations: services.degradations,
    });
    for (const routes of definition.routes) routes(http, services);
    const address = options.listen ?? config[name];
    if (group.role === 'primary') await requireFree(address, name);
    const how = group.role === 'alone' ? { handle: options.listener } : { reusePort: true };
    bound.port = await listen(http, { ...address, ...how }, name);
    await definition.ready?.(services, resources);
    if (group.role === 'primary') group.start({ host: address.host, port: bound.port });
  } catch (error) {
    logger.diagnostic({
      domain: 'daemon',
      event: 'daemon.start_failed',
      level: 'fatal',
      reasonCode: codeOf(error) ?? 'START_FAILED',
      message: `${name} did not start: ${messageOf(error)}`,
      outcome: 'failed',
      error,
    });
    // The start error matters more than a failure to close the half-open service.
    await close().catch((closing: unknown) =>
      logger.error(`${name} could not be closed`, { error: closing }),
    );
    throw error;
  }
  const url = `http://${urlHost((options.listen ?? config[name]).host)}:${bound.port}`;
  logger.diagnostic({
    domain: 'daemon',
    event: 'daemon.started',
    level: 'info',
    reasonCode: 'STARTED',
    message: `${name} listens on ${url}`,
    outcome: 'succeeded',
    evidence: { url, pid: process.pid },
  });
  const listener = group.role === 'alone' ? listeningHandle(http.server) : undefined;
  return { name, url, port: bound.port, services, logger, listener, close };
}

function rethrow(error: PlatformError): never {
  throw error;
}

/** Registers secrets that redaction cannot recognise by their form. */
function keepSecrets({ config, keys, operator, env = {} }: StartOptions): void {
  const { jwtSecret, previousJwtSecret, internalSecret, masterKey } = keys;
  keepSecret([
    jwtSecret,
    previousJwtSecret,
    internalSecret,
    masterKey,
    serviceKey(internalSecret),
    operator?.clientSecret,
    ...Object.keys(config.gateway.staticTokens),
    ...secretValues(config.adapters, env),
  ]);
}

/** Host names for clients, besides those of this machine. */
function allowedHosts({ gateway: { allowedHosts, publicUrl } }: PlatformConfig): string[] {
  return publicUrl ? [...allowedHosts, new URL(publicUrl).hostname] : allowedHosts;
}

/** Start parameters for siblings, equal to ours. */
function startOf(options: StartOptions): Omit<DaemonStart, 'listen' | 'sibling'> {
  const {
    config,
    profile,
    projectDir,
    configFile = null,
    dataDir,
    keys,
    operator,
    peers,
    logLevel,
  } = options;
  const told = { config, profile, projectDir, configFile, dataDir, keys, operator, peers: peers.known() };
  return logLevel ? { ...told, logLevel } : told;
}
