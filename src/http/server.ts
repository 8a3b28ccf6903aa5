import type { IncomingMessage, Server } from 'node:http';
import fastify, {
  type FastifyHttpOptions,
  type FastifyInstance,
  type FastifyReply,
  type FastifyRequest,
  type onResponseHookHandler,
  type RouteOptions,
} from 'fastify';
import { type Caller, HEADERS, LIMITS, type ServiceName } from '../contracts/index.ts';
import type { Clock } from '../kit/clock.ts';
import { PlatformError } from '../kit/errors.ts';
import { costFault } from '../kit/json-cost.ts';
import type { Logger } from '../kit/logger.ts';
import type { Metrics } from '../kit/metrics.ts';
import type { Random } from '../kit/random.ts';
import { type CreateLimiter, localLimiters } from '../kit/rate-limiter.ts';
import { saneId } from '../kit/trace.ts';
import type { Tracer } from '../kit/tracer.ts';
import { type Account, type AnsweredRequest, createAccount } from './account.ts';
import { createClientErrorAnswer } from './client-error.ts';
import { drainPolitely } from './drain.ts';
import { refuseEncodedBodies } from './encodings.ts';
import { continueWhenWanted } from './expectations.ts';
import type { CheckHost } from './host-check.ts';
import { keepProtocol, SERVER_LIMITS } from './keep-protocol.ts';
import type { MountedEndpoint } from './openapi.ts';
import { refuseOtherProtocols } from './other-protocols.ts';
import { nameTrace } from './request-ids.ts';
import { requireSound } from './request-line.ts';
import { pathOf } from './request-path.ts';
import { originForm } from './request-target.ts';
import { allowedMethods, methodNotAllowed, type RegisteredRoute } from './route-table.ts';
import { sendError } from './send-error.ts';

/** Of a request's body, unless its service or endpoint says otherwise. */
const BODY_LIMIT_BYTES = 10 * 1024 * 1024;

declare module 'fastify' {
  interface FastifyRequest {
    /** `performance.now()` at the request line. */
    startedAt: number;
    traceId: string;
    /** This request's own span: what calls made for it name as their parent. */
    spanId: string;
    /** Set once authenticated. */
    caller: Caller | null;
    /** What metrics and log call the route where Fastify's own pattern (a wildcard) says too little. */
    routeLabel: string | null;
  }
  interface FastifyInstance {
    kit: HttpKit;
  }
  interface FastifyContextConfig {
    /** The route calls `kit.account` itself: two listeners a request less. */
    accountsItself?: boolean;
  }
}

/**
 * Resolves who calls, or throws UNAUTHORIZED; what it has to say of the caller's limits goes into `reply`. Synchronous
 * when it can be: a promise costs the hot path.
 */
export type Authenticate = (request: FastifyRequest, reply?: FastifyReply) => Caller | Promise<Caller>;

/** What `mount` and the standard routes need beside the server itself. */
export interface HttpKit {
  service: ServiceName;
  logger: Logger;
  metrics: Metrics;
  clock: Clock;
  random: Random;
  /** Makes the limiters of endpoints. */
  createLimiter: CreateLimiter;
  authenticate: Authenticate;
  /** Told of each request where traces are exported. */
  tracer?: Tracer | undefined;
  /** Counts and logs a request whose reply Fastify does not see the end of. */
  account: (request: FastifyRequest, status: number) => void;
  /** The same for a request that Fastify never saw. */
  accountAnswered: Account;
  /** Whose `X-Forwarded-*` count. */
  trustedProxies?: readonly string[];
  /** Time that open requests get once the daemon is being closed; default 8 s. */
  drainMs?: number | undefined;
  /** Once the daemon is being closed: answers say `Connection: close`. */
  draining: boolean;
  /** `performance.now()` at which a drain cuts what is still open. */
  drainEndsAt: number;
  /** `performance.now()` of the latest request; the drain waits for what is still arriving. */
  lastRequestAt: number;
  /** Connections accepted so far. */
  connections: number;
  /** Refuses names that are not this daemon's; throws. */
  checkHost?: CheckHost | undefined;
  /** Every endpoint mounted so far: what OpenAPI prints. */
  endpoints: MountedEndpoint[];
  /** Every route of the server, mounted as an endpoint or not. */
  routes: RegisteredRoute[];
}

export type Http = FastifyInstance;

type KitState =
  | 'account'
  | 'accountAnswered'
  | 'draining'
  | 'drainEndsAt'
  | 'lastRequestAt'
  | 'connections'
  | 'endpoints'
  | 'routes';

export interface HttpOptions extends Omit<HttpKit, KitState | 'createLimiter'> {
  /** Default: limits of this process alone. */
  createLimiter?: CreateLimiter;
  bodyLimitBytes?: number;
  /** How long a body may stand still; default 30 s. */
  bodyIdleMs?: number;
}

/**
 * Endpoints are checked by their own zod schemas (`mount`), so no route has one of Fastify's. Left to itself it loads ajv
 * and fast-json-stringify for them at every start: 10 MB and 40 ms of each service.
 */
function noCompiler(): never {
  throw new Error("Routes have no Fastify schemas; an endpoint's own are checked by mount().");
}

/** A Fastify server with the platform's ids, error bodies, access log, metrics and limits. */
export function createHttp(options: HttpOptions): Http {
  const { logger, random } = options;
  const settings: FastifyHttpOptions<Server> = {
    logger: false,
    genReqId: (request: IncomingMessage) => saneId(request.headers[HEADERS.requestId], random),
    bodyLimit: options.bodyLimitBytes ?? BODY_LIMIT_BYTES,
    forceCloseConnections: 'idle',
    return503OnClosing: false,
    routerOptions: { maxParamLength: 2048, ignoreTrailingSlash: false },
    keepAliveTimeout: LIMITS.keepAliveMs,
    http: {
      ...SERVER_LIMITS,
      // What is not taken up is declined, as HTTP says: other protocols (h2c), and sockets where there are none. Older
      // Nodes hand them to `upgrade`.
      shouldUpgradeCallback: (request) =>
        request.headers.upgrade?.toLowerCase() === 'websocket' && http.server.listenerCount('upgrade') > 0,
    },
    requestTimeout: LIMITS.requestTimeoutMs,
    ...(options.trustedProxies?.length ? { trustProxy: [...options.trustedProxies] } : {}),
    rewriteUrl: originForm,
    schemaController: { compilersFactory: { buildValidator: noCompiler, buildSerializer: noCompiler } },
    clientErrorHandler: createClientErrorAnswer(random),
    // These pass every hook by, so what the hooks do is done here.
    frameworkErrors: (error, request, reply) => {
      request.startedAt = performance.now();
      http.kit.lastRequestAt = request.startedAt;
      nameTrace(request, random);
      sendError(error, request, reply, logger);
      account(request, reply.statusCode);
    },
  };
  const http: Http = fastify(settings);
  const accountAnswered = createAccount(options);
  const account = (request: FastifyRequest, status: number): void =>
    accountAnswered(answeredOf(request, status));
  const state = {
    draining: false,
    drainEndsAt: 0,
    lastRequestAt: 0,
    connections: 0,
    endpoints: [],
    routes: [],
  };
  const createLimiter = options.createLimiter ?? localLimiters(options.clock);
  http.decorate('kit', { ...options, ...state, createLimiter, account, accountAnswered });
  http.addHook('onRoute', (route) => {
    const { method, url } = route;
    if (!route.config?.accountsItself) route.onResponse = accounting(route.onResponse, account);
    // A HEAD comes with each GET and says nothing of its own.
    for (const name of [method].flat())
      if (name !== 'HEAD') http.kit.routes.push({ method: name, path: url });
  });
  http.decorateRequest('startedAt', 0);
  http.decorateRequest('traceId', '');
  http.decorateRequest('spanId', '');
  http.decorateRequest('caller', null);
  http.decorateRequest('routeLabel', null);
  parseJsonStrictly(http);

  http.addHook('onRequest', (request, reply, done) => {
    request.startedAt = performance.now();
    http.kit.lastRequestAt = request.startedAt;
    nameTrace(request, random);
    reply.header(HEADERS.requestId, request.id);
    // No browser may guess that our JSON is a script or a page.
    reply.header('x-content-type-options', 'nosniff');
    try {
      requireSound(request.raw, options.checkHost);
      done();
    } catch (error) {
      done(error as Error);
    }
  });
  http.setErrorHandler((error, request, reply) => sendError(error, request, reply, logger));
  // Before a body is read that nobody wants: what is not there is not there, whatever was sent to it.
  http.addHook('preParsing', (request, reply, _payload, done) => {
    if (!request.is404) return done();
    reply.raw.once('finish', () => account(request, reply.statusCode));
    done(asksAboutServer(request) ? null : notFound(request.method, pathOf(request.url), http.kit.routes));
  });
  http.setNotFoundHandler((_request, reply) =>
    reply.code(204).header('allow', 'GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS').send(),
  );
  refuseOtherProtocols(http, random);
  keepProtocol(http.server, random, options.bodyIdleMs);
  refuseEncodedBodies(http);
  continueWhenWanted(http);
  drainPolitely(http);
  return http;
}

/** A route's own hooks and the one that counts and logs. On routes, as a hook of the server would be on all of them. */
function accounting(own: RouteOptions['onResponse'], account: HttpKit['account']): onResponseHookHandler[] {
  const count: onResponseHookHandler = (request, reply, done) => {
    account(request, reply.statusCode);
    done();
  };
  return [...[own ?? []].flat(), count];
}

/** `OPTIONS *` is about the server as a whole (RFC 9110 9.3.7). */
function asksAboutServer({ raw, method }: FastifyRequest): boolean {
  return raw.url === '*' && method === 'OPTIONS';
}

function notFound(method: string, path: string, routes: readonly RegisteredRoute[]): PlatformError {
  const allow = allowedMethods(routes, path);
  if (allow.length === 0 || allow.includes(method)) {
    return new PlatformError(
      'NOT_FOUND',
      `There is no ${method} ${path} here; /openapi.json lists what there is.`,
    );
  }
  return methodNotAllowed(method, path, allow);
}

function answeredOf(request: FastifyRequest, status: number): AnsweredRequest {
  return {
    method: request.method,
    route: request.routeLabel ?? request.routeOptions.url ?? '(none)',
    status,
    startedAt: request.startedAt,
    requestId: request.id,
    traceId: request.traceId,
    spanId: request.spanId,
    tenantId: request.caller?.namespaceId ?? '',
    traceparent: request.headers.traceparent,
  };
}

function parseJsonStrictly(http: Http): void {
  http.removeAllContentTypeParsers();
  http.addContentTypeParser('application/json', { parseAs: 'string' }, (request, body, done) => {
    const text = body as string;
    if (text === '') return done(null, undefined);
    // Ten megabytes of `[]` or of keys would stop this service for seconds, for everybody.
    const times = Math.max(1, Math.ceil(request.routeOptions.bodyLimit / BODY_LIMIT_BYTES));
    const fault = costFault(text, LIMITS.jsonDepth, times);
    if (fault)
      return done(
        new PlatformError('VALIDATION_ERROR', `The body is JSON ${fault}; send less, or nest it less.`),
      );
    try {
      done(null, JSON.parse(text));
    } catch (error) {
      done(new PlatformError('VALIDATION_ERROR', `The body is not valid JSON: ${(error as Error).message}`));
    }
  });
}
