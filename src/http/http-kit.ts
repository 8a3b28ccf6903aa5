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
import type { DescribedEvent } from './openapi-webhooks.ts';
import type { RegisteredRoute } from './route-table.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** Time at which the request line arrived, from `performance.now()`. */
    startedAt: number;
    traceId: string;
    /** Id of this request's span, which is the parent span of calls made while serving the request. */
    spanId: string;
    /** Authenticated caller, or null before authentication. */
    caller: Caller | null;
    /** Label that replaces the route pattern of wildcard routes in metrics and logs. */
    routeLabel: string | null;
  }
  interface FastifyInstance {
    kit: HttpKit;
  }
}

/**
 * Returns the caller or throws UNAUTHORIZED. Adds rate limit headers to `reply`. Returns a promise only if necessary,
 * because a promise slows down the request.
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
  /** Tracer that records each request, or undefined if traces are not exported. */
  tracer?: Tracer | undefined;
  /** Counts and logs a request whose response bypasses Fastify. */
  account: (request: FastifyRequest, status: number) => void;
  /** Counts and logs a request that bypasses Fastify entirely. */
  accountAnswered: Account;
  /** Proxies whose `X-Forwarded-*` headers are trusted. */
  trustedProxies?: readonly string[];
  /** Time on shutdown for open requests to finish, in ms. The default is 8 s. */
  drainMs?: number | undefined;
  /** Whether the service is stopping. Responses then contain `Connection: close`. */
  draining: boolean;
  /** Time (`performance.now()`) at which a draining server closes the connections that are still open. */
  drainEndsAt: number;
  /**
   * Time (`performance.now()`) of the latest request. A draining server keeps accepting connections while requests
   * arrive.
   */
  lastRequestAt: number;
  connections: number;
  checkHost?: CheckHost | undefined;
  /** Mounted endpoints, from which the OpenAPI description is generated. */
  endpoints: MountedEndpoint[];
  /** Returns the events for `webhooks` of the OpenAPI description. Undefined if the service sends no messages. */
  describeEvents?: (() => Promise<DescribedEvent[]>) | undefined;
  /** All routes of the server, including routes without an endpoint and routes that Fastify does not handle. */
  routes: RegisteredRoute[];
}

export type Http = FastifyInstance;
