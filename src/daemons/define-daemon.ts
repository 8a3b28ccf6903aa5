import type { Degradation, PlatformConfig, ServiceName } from '../contracts/index.ts';
import type { Authenticate, Http, StandardRoutes } from '../http/index.ts';
import type { Analytics } from '../kit/analytics.ts';
import type { Clock } from '../kit/clock.ts';
import type { KeyMaterial } from '../kit/keys.ts';
import type { Logger } from '../kit/logger.ts';
import type { Metrics } from '../kit/metrics.ts';
import type { Random } from '../kit/random.ts';
import type { CreateLimiter } from '../kit/rate-limiter.ts';
import type { Environment } from '../kit/secret-ref.ts';
import type { Tracer } from '../kit/tracer.ts';
import type { SandboxStatus, StubFetch } from '../plugins/index.ts';
import type { ProcessGroup } from './group/process-group.ts';
import type { Peers } from './peers.ts';

/** The operator's credentials on this machine, made at first start. */
export interface OperatorCredentials {
  clientId: string;
  clientSecret: string;
  hostId: string;
  namespaceId: string;
}

/** What a daemon is built of; each part receives what it needs by name. */
export interface Resources {
  config: PlatformConfig;
  profile: string;
  /** The folder of `svc.config.json`. */
  projectDir: string;
  /** The config file that is in force; null: the defaults. */
  configFile: string | null;
  /** `.svc/`: where the daemon's own database lies. */
  dataDir: string;
  keys: KeyMaterial;
  /** Where secrets that the config names are found. */
  env: Environment;
  operator: OperatorCredentials | null;
  clock: Clock;
  random: Random;
  logger: Logger;
  metrics: Metrics;
  analytics: Analytics;
  /** Whether the process before died of a fault of its own: of an error or a signal that no one sends. */
  hadFault?: boolean | undefined;
  /** Only where traces are exported. */
  tracer?: Tracer | undefined;
  peers: Peers;
  /** Answers `ctx.fetch` in tests of plugins. */
  stubFetch?: StubFetch | undefined;
  /** Called with the sandbox of each plugin process that the daemon starts. */
  onSandbox?: ((sandbox: SandboxStatus) => void) | undefined;
  /** The processes that are this daemon; most are one. */
  group: ProcessGroup;
  /** Limits that hold for all processes of the daemon together. */
  createLimiter: CreateLimiter;
  /** The port as bound; port 0 in the config is a real one here. Throws before the server listens. */
  boundPort: () => number;
}

/** What every daemon's services may hold beside their own. */
export interface DaemonServices {
  /** How callers are authenticated; default: the upstream rule of `http/identity.ts`. */
  authenticate?: Authenticate;
  /** What of it does not work as it should, for its health. */
  degradations?: () => readonly Degradation[];
}

/** A service of the platform as data; `run-daemon.ts` opens everything in order and closes it in reverse. */
export interface DaemonDefinition<Services extends DaemonServices = DaemonServices> {
  name: ServiceName;
  defaultPort: number;
  services: (resources: Resources) => Services | Promise<Services>;
  routes: ReadonlyArray<(http: Http, services: Services) => void>;
  standard?: Partial<Omit<StandardRoutes, 'isDraining' | 'degradations'>>;
  /** Once the server listens: work that needs a running daemon. */
  ready?: (services: Services, resources: Resources) => void | Promise<void>;
  /** Beside the last requests: lets work under way finish, within the service's `drainMs`. */
  drain?: (services: Services) => Promise<void>;
  /** After the last request was answered. */
  close?: (services: Services) => void | Promise<void>;
  /** How many processes share the daemon's port; one unless told. */
  processes?: (config: PlatformConfig) => number;
  bodyLimitBytes?: (config: PlatformConfig) => number;
  /** Addresses whose word on the client's address counts; none by default. */
  trustedProxies?: (config: PlatformConfig) => readonly string[];
}

export function defineDaemon<Services extends DaemonServices>(
  definition: DaemonDefinition<Services>,
): DaemonDefinition<Services> {
  return definition;
}
