import { isIPv6 } from 'node:net';
import type { PlatformConfig } from '../contracts/index.ts';
import {
  createHostCheck,
  createHttp,
  type Http,
  STANDARD_ROUTES,
  standardRoutes,
  upstreamIdentity,
} from '../http/index.ts';
import { type Analytics, createAnalytics } from '../kit/analytics.ts';
import { codeOf, messageOf, PlatformError } from '../kit/errors.ts';
import { serviceKey } from '../kit/keys.ts';
import { createLogger, type Logger, type LogLevel } from '../kit/logger.ts';
import { createMetrics, type Metrics } from '../kit/metrics.ts';
import type { LineOutput } from '../kit/output.ts';
import { keepSecret } from '../kit/redact.ts';
import type { OtlpTarget } from '../kit/tracer.ts';
import type { DaemonDefinition, DaemonServices, Resources } from './define-daemon.ts';
import { createStoreMetrics } from './store-metrics.ts';

export interface StartOptions
  extends Pick<
    Resources,
    'config' | 'profile' | 'projectDir' | 'dataDir' | 'keys' | 'operator' | 'clock' | 'random' | 'peers'
  > {
  output: LineOutput;
  logLevel?: LogLevel;
  /** Default: those of the daemon itself. A benchmark gives ones that do nothing, to see what they cost. */
  metrics?: Metrics;
  analytics?: Analytics;
  /** Where traces go; nowhere unless given. */
  otlp?: OtlpTarget | undefined;
  /** Default: host and port of the daemon's section of the config; port 0 takes any free one. */
  listen?: { host: string; port: number };
}

export interface RunningDaemon<Services = unknown> {
  name: string;
  /** `http://<host>:<port>` as bound. */
  url: string;
  port: number;
  services: Services;
  logger: Logger;
  /** Refuses new connections, answers what is under way, then closes what the daemon opened. */
  close(): Promise<void>;
}

/** Starts a daemon in this process. Throws CONFLICT when its address is taken, and whatever its services throw. */
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
    ? (await import('../kit/otlp.ts')).createOtlpTracer({ ...options.otlp, service: name, clock, logger })
    : undefined;
  const resources: Resources = { ...options, logger, metrics, analytics, tracer, boundPort };
  let draining = false;
  let services: Services | undefined;
  let http: Http | undefined;

  async function close(): Promise<void> {
    draining = true;
    await http?.close();
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
    http = createHttp({
      service: name,
      logger,
      metrics,
      clock,
      random,
      tracer,
      authenticate:
        services.authenticate ??
        upstreamIdentity({
          internalSecret: options.keys.internalSecret,
          mode: config.auth.mode ?? 'optional',
          logger,
        }),
      ...(bodyLimitBytes ? { bodyLimitBytes: bodyLimitBytes(config) } : {}),
      ...(trustedProxies ? { trustedProxies: trustedProxies(config) } : {}),
      checkHost: createHostCheck({
        listenHost: (options.listen ?? config[name]).host,
        allowedHosts: allowedHosts(config),
      }),
    });
    standardRoutes(http, { ...STANDARD_ROUTES, ...definition.standard, isDraining: () => draining });
    for (const routes of definition.routes) routes(http, services);
    bound.port = await listen(http, options.listen ?? config[name], name);
    await definition.ready?.(services, resources);
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
    // Why it did not start is what counts, also when closing the half-open daemon fails in turn.
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
  return { name, url, port: bound.port, services, logger, close };
}

/** Everything secret that a daemon is told at its start and that has no shape of its own. */
function keepSecrets({ config, keys, operator }: StartOptions): void {
  const { jwtSecret, previousJwtSecret, internalSecret, masterKey } = keys;
  keepSecret([
    jwtSecret,
    previousJwtSecret,
    internalSecret,
    masterKey,
    serviceKey(internalSecret),
    operator?.clientSecret,
    ...Object.keys(config.gateway.staticTokens),
  ]);
}

/** The names under which clients may call, beside those of this machine. */
function allowedHosts({ gateway: { allowedHosts, publicUrl } }: PlatformConfig): string[] {
  return publicUrl ? [...allowedHosts, new URL(publicUrl).hostname] : allowedHosts;
}

/** Node's 511 turns a burst of a thousand connections into a second of waiting for those beyond. */
const BACKLOG = 4096;

async function listen(http: Http, address: { host: string; port: number }, name: string): Promise<number> {
  try {
    await http.listen({ host: address.host, port: address.port, backlog: BACKLOG });
  } catch (error) {
    const { host, port } = address;
    if (codeOf(error) === 'EADDRINUSE') {
      throw new PlatformError(
        'CONFLICT',
        `Port ${port} on ${host} is taken; free it or choose another with \`svc up --port ${name}=<port>\`.`,
        { details: { service: name, host, port }, cause: error },
      );
    }
    throw new PlatformError(
      'INTERNAL_ERROR',
      `${name} cannot listen on ${host}:${port}: ${messageOf(error)}`,
      { details: { service: name, host, port }, cause: error },
    );
  }
  const bound = http.server.address();
  return typeof bound === 'object' && bound ? bound.port : address.port;
}

/** A host as it stands in a URL that this machine can call: any-address becomes loopback. */
function urlHost(host: string): string {
  if (host === '0.0.0.0' || host === '::') return '127.0.0.1';
  return isIPv6(host) ? `[${host}]` : host;
}
