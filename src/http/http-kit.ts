import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Caller, ServiceName } from '../contracts/index.ts';
import type { CreateLimiter } from '../kit/limits/rate-limiter.ts';
import type { Random } from '../kit/security/random.ts';
import type { Logger } from '../kit/telemetry/logger.ts';
import type { Metrics } from '../kit/telemetry/metrics.ts';
import type { Tracer } from '../kit/telemetry/tracer.ts';
import type { Clock } from '../kit/time/clock.ts';
import type { Account } from './account.ts';
import type { CheckHost } from './host-check.ts';
import type { MountedEndpoint } from './openapi.ts';
import type { RegisteredRoute } from './route-table.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** `performance.now()` when the request line arrived. */
    startedAt: number;
    traceId: string;
    /** Id of this request's span, which is the parent span of calls made while serving the request. */
    spanId: string;
    /** The authenticated caller; null before authentication. */
    caller: Caller | null;
    /** Replaces Fastify's route pattern in metrics and logs, for wildcard routes. */
    routeLabel: string | null;
  }
  interface FastifyInstance {
    kit: HttpKit;
  }
}

/**
 * Returns the caller or throws UNAUTHORIZED. Adds rate limit headers to `reply`. Most calls return without a promise,
 * because a promise would slow down every request.
 */
export type Authenticate = (request: FastifyRequest, reply?: FastifyReply) => Caller | Promise<Caller>;

/** Dependencies of `mount` and the standard routes. */
export interface HttpKit {
  service: ServiceName;
  logger: Logger;
  metrics: Metrics;
  clock: Clock;
  random: Random;
  createLimiter: CreateLimiter;
  authenticate: Authenticate;
  /** Records each request if traces are exported. */
  tracer?: Tracer | undefined;
  /** Counts and logs a request whose response bypasses Fastify. */
  account: (request: FastifyRequest, status: number) => void;
  /** Counts and logs a request that bypasses Fastify entirely. */
  accountAnswered: Account;
  /** Proxies whose `X-Forwarded-*` headers are trusted. */
  trustedProxies?: readonly string[];
  /** Time for open requests to finish on shutdown. The default is 8 s. */
  drainMs?: number | undefined;
  /** True while the service is stopping: responses then contain `Connection: close`. */
  draining: boolean;
  /** `performance.now()` at which a drain closes open connections. */
  drainEndsAt: number;
  /** `performance.now()` of the latest request. A draining server accepts connections while requests arrive. */
  lastRequestAt: number;
  connections: number;
  checkHost?: CheckHost | undefined;
  /** Mounted endpoints, which the OpenAPI description lists. */
  endpoints: MountedEndpoint[];
  /** All routes of the server, including those without an endpoint and those that its own request listener serves. */
  routes: RegisteredRoute[];
}

export type Http = FastifyInstance;
