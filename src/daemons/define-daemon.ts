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

/** Dependencies of a platform service. Each component of the service takes the dependencies that it needs by name. */
export interface Resources {
  config: PlatformConfig;
  profile: string;
  projectDir: string;
  /** The active config file, or null if the service runs with the default configuration. */
  configFile: string | null;
  /** Path of the data folder (`.svc/`). */
  dataDir: string;
  keys: KeyMaterial;
  /** Environment variables, which contain the secrets that the config references. */
  env: Environment;
  operator: OperatorCredentials | null;
  clock: Clock;
  random: Random;
  logger: Logger;
  metrics: Metrics;
  analytics: Analytics;
  /** Whether the previous process of this service exited with an error or by an unexpected signal. */
  hadFault?: boolean | undefined;
  tracer?: Tracer | undefined;
  peers: Peers;
  /** Services that other nodes run. By default there are none. */
  elsewhere?: readonly ServiceName[] | undefined;
  /** URL of this process that other nodes use. The default follows from `SVC_ADVERTISE_URL` and the bound address. */
  advertise?: string | undefined;
  /** Replaces `ctx.fetch` in tests of plugins. */
  stubFetch?: StubFetch | undefined;
  /** Callback that is called with the sandbox status of each plugin process that the service starts. */
  onSandbox?: ((sandbox: SandboxStatus) => void) | undefined;
  /** Part of this process in a shared port, or undefined if the service has one process. */
  portShare?: PortShare | undefined;
  /**
   * Whether other processes of this service can use the same store. True with PostgreSQL and with a shared port. Tests
   * also set this option, to start two services on one SQLite store.
   */
  sharesStore?: boolean | undefined;
  /** Whether other nodes may use the same store. */
  hasOtherNodes: boolean;
  /** Callback that is called when the service cannot continue to work. The caller must close the service. */
  onFatal?: ((error: PlatformError) => void) | undefined;
  /** Creates rate limiters shared by all processes of the service. */
  createLimiter: CreateLimiter;
  address: ListenAddress;
}

/** Optional components that every service can provide. */
export interface DaemonServices {
  /** Authenticates callers. The default is `upstreamIdentity`. */
  authenticate?: Authenticate;
  /** Returns the faults that the health endpoint reports as `degraded`. */
  degradations?: () => readonly Degradation[];
  /** Checks for the readiness endpoint that the service's store responds. */
  probeStore?: () => Promise<unknown>;
  /** Marks this process in the store as stopping, so that other nodes use other processes of the service. */
  withdraw?: () => Promise<void>;
  /** Reports to the readiness endpoint whether this process still has to load the latest plugin changes. */
  plugins?: { isBehind(): Promise<boolean> };
}

/** Declaration of a platform service, which `run-daemon.ts` starts. */
export interface DaemonDefinition<Services extends DaemonServices = DaemonServices> {
  name: ServiceName;
  defaultPort: number;
  /**
   * Creates the components of the service. Each component with a `close` method must be added to `stack` as soon as the
   * component is open. The stack is disposed when the service closes or fails to start.
   */
  services: (resources: Resources, stack: AsyncDisposableStack) => Services | Promise<Services>;
  routes: ReadonlyArray<(http: Http, services: Services) => void>;
  /**
   * Creates a request listener that handles some requests itself and passes all others to Fastify. By default, Fastify
   * handles all requests.
   */
  listener?: (http: Http, services: Services) => RequestListener;
  standard?: Partial<Omit<StandardRoutes, 'isDraining' | 'readiness' | 'degradations'>>;
  /** Callback that is called as soon as the server listens. */
  ready?: (services: Services, resources: Resources) => void | Promise<void>;
  /**
   * Waits for background work during shutdown, at most for the service's `drainMs`. Runs in parallel with the last
   * requests.
   */
  drain?: (services: Services) => Promise<void>;
  /** Callback that is called after the last request was answered, before the stack of `services` is disposed. */
  close?: (services: Services) => void | Promise<void>;
  bodyLimitBytes?: (config: PlatformConfig) => number;
  /** Addresses of proxies that are trusted to report the client's address. By default, no proxy is trusted. */
  trustedProxies?: (config: PlatformConfig) => readonly string[];
}

export function defineDaemon<Services extends DaemonServices>(
  definition: DaemonDefinition<Services>,
): DaemonDefinition<Services> {
  return definition;
}
