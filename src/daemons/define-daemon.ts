import type { RequestListener } from 'node:http';
import type { Degradation, PlatformConfig, ServiceName } from '../contracts/index.ts';
import type { Authenticate, Http, StandardRoutes } from '../http/index.ts';
import type { Environment } from '../kit/config/secret-ref.ts';
import type { PlatformError } from '../kit/errors/errors.ts';
import type { CreateLimiter } from '../kit/limits/rate-limiter.ts';
import type { KeyMaterial } from '../kit/security/keys.ts';
import type { Random } from '../kit/security/random.ts';
import type { Analytics } from '../kit/telemetry/analytics.ts';
import type { Logger } from '../kit/telemetry/logger.ts';
import type { Metrics } from '../kit/telemetry/metrics.ts';
import type { Tracer } from '../kit/telemetry/tracer.ts';
import type { Clock } from '../kit/time/clock.ts';
import type { SandboxStatus, StubFetch } from '../plugins/index.ts';
import type { ListenAddress } from './listen-address.ts';
import type { Peers } from './peers.ts';
import type { OperatorCredentials, PortShare } from './process-protocol.ts';

/** Dependencies of a service. Each part of the service takes the dependencies that it needs by name. */
export interface Resources {
  config: PlatformConfig;
  profile: string;
  projectDir: string;
  /** The active config file, or null if the service runs with the default configuration. */
  configFile: string | null;
  /** The data folder (`.svc/`). */
  dataDir: string;
  keys: KeyMaterial;
  /** Environment variables with the secrets that the config references. */
  env: Environment;
  operator: OperatorCredentials | null;
  clock: Clock;
  random: Random;
  logger: Logger;
  metrics: Metrics;
  analytics: Analytics;
  /** Whether the previous process crashed: it exited with an error or by an unexpected signal. */
  hadFault?: boolean | undefined;
  tracer?: Tracer | undefined;
  peers: Peers;
  /** Answers `ctx.fetch` in tests of plugins. */
  stubFetch?: StubFetch | undefined;
  /** Called with the sandbox of each plugin process that the service starts. */
  onSandbox?: ((sandbox: SandboxStatus) => void) | undefined;
  /** Set if several processes share the service's port. */
  portShare?: PortShare | undefined;
  /**
   * Whether other processes of this service may use the same store. Always true with PostgreSQL, and if several
   * processes share the port. Tests also set it, to start two services on one SQLite store.
   */
  sharesStore?: boolean | undefined;
  /** Whether other nodes may use the same store. */
  hasOtherNodes: boolean;
  /** Called when the service cannot continue to work. The caller must close the service. */
  onFatal?: ((error: PlatformError) => void) | undefined;
  /** Creates rate limiters shared by all processes of the service. */
  createLimiter: CreateLimiter;
  address: ListenAddress;
}

/** Optional parts common to every service. */
export interface DaemonServices {
  /** Authenticates callers. The default is `upstreamIdentity`. */
  authenticate?: Authenticate;
  /** Returns the faults that the health endpoint reports as `degraded`. */
  degradations?: () => readonly Degradation[];
  /** Resolves when the service's store has answered, for the readiness endpoint. */
  probeStore?: () => Promise<unknown>;
  /** Tells the readiness endpoint whether this process has not yet loaded the latest change of plugins. */
  plugins?: { isBehind(): Promise<boolean> };
}

/** Declaration of a platform service, which `run-daemon.ts` starts. */
export interface DaemonDefinition<Services extends DaemonServices = DaemonServices> {
  name: ServiceName;
  defaultPort: number;
  /**
   * Builds the service's parts, and puts each part with a `close` on the stack right after opening it. The stack is
   * disposed in reverse order when the service closes, or when its start fails.
   */
  services: (resources: Resources, stack: AsyncDisposableStack) => Services | Promise<Services>;
  routes: ReadonlyArray<(http: Http, services: Services) => void>;
  /** Creates a request listener that passes some requests to Fastify. By default Fastify gets all requests. */
  listener?: (http: Http, services: Services) => RequestListener;
  standard?: Partial<Omit<StandardRoutes, 'isDraining' | 'readiness' | 'degradations'>>;
  /** Called once the server listens. */
  ready?: (services: Services, resources: Resources) => void | Promise<void>;
  /** Lets background work finish while the last requests are answered, within the service's `drainMs`. */
  drain?: (services: Services) => Promise<void>;
  /** Called after the last request was answered, before the stack of `services` is disposed. */
  close?: (services: Services) => void | Promise<void>;
  bodyLimitBytes?: (config: PlatformConfig) => number;
  /** Proxies trusted for the client's address; default none. */
  trustedProxies?: (config: PlatformConfig) => readonly string[];
}

export function defineDaemon<Services extends DaemonServices>(
  definition: DaemonDefinition<Services>,
): DaemonDefinition<Services> {
  return definition;
}
