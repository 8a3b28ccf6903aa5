import type { IncomingMessage, RequestListener } from 'node:http';
import fastify, { type FastifyRequest, type onResponseHookHandler, type RouteOptions } from 'fastify';
import { HEADERS, LIMITS } from '../contracts/index.ts';
import { findCostProblem } from '../kit/data/json-cost.ts';
import { PlatformError } from '../kit/errors/errors.ts';
import { type CreateLimiter, localLimiters } from '../kit/limits/rate-limiter.ts';
import { saneId } from '../kit/telemetry/trace.ts';
import { type AnsweredRequest, createAccount } from './account.ts';
import { createClientErrorAnswer } from './client-error.ts';
import { drainOnClose } from './drain.ts';
import { refuseEncodedBodies } from './encodings.ts';
import { continueWhenWanted } from './expectations.ts';
import type { Http, HttpKit } from './http-kit.ts';
import { createProtocolServer, keepProtocol } from './keep-protocol.ts';
import { refuseOtherProtocols } from './other-protocols.ts';
import { setRequestIds } from './request-ids.ts';
import { requireValidRequest } from './request-line.ts';
import { pathOf } from './request-path.ts';
import { originForm } from './request-target.ts';
import { allowedMethods, methodNotAllowed, type RegisteredRoute } from './route-table.ts';
import { sendError } from './send-error.ts';

export const BODY_LIMIT_BYTES = 10 * 1024 * 1024;

/** Options shared by all routers. If two routers parsed a path differently, a request could bypass a check. */
export const ROUTER_OPTIONS = { maxParamLength: 2048, ignoreTrailingSlash: false };

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
  /** Creates the rate limiters of endpoints. By default, each process counts calls separately. */
  createLimiter?: CreateLimiter;
  bodyLimitBytes?: number;
  /** Maximum time in ms between two chunks of a body. The default is 30 s. */
  bodyIdleMs?: number;
  /**
   * Creates a request listener, which can pass requests on to `http.routing` (Fastify). By default, Fastify handles all
   * requests.
   */
  listener?: ((http: Http) => RequestListener) | undefined;
}

/**
 * Prevents Fastify schemas in routes, because Fastify's compilers would take 10 MB and 40 ms per service. `mount`
 * validates endpoints with zod instead.
 */
function noCompiler(): never {
  throw new Error('Routes must not have Fastify schemas; mount() validates endpoints.');
}

/** Creates a Fastify server with request ids, error bodies, access log, metrics and limits. */
export function createHttp(options: HttpOptions): Http {
  const { logger, random } = options;
  const server = createProtocolServer();
  const http: Http = fastify({
    serverFactory: () => server,
    logger: false,
    genReqId: (request: IncomingMessage) => saneId(request.headers[HEADERS.requestId], random),
    bodyLimit: options.bodyLimitBytes ?? BODY_LIMIT_BYTES,
    forceCloseConnections: 'idle',
    return503OnClosing: false,
    routerOptions: ROUTER_OPTIONS,
    ...(options.trustedProxies?.length ? { trustProxy: [...options.trustedProxies] } : {}),
    rewriteUrl: originForm,
    schemaController: { compilersFactory: { buildValidator: noCompiler, buildSerializer: noCompiler } },
    clientErrorHandler: createClientErrorAnswer(random),
    // Fastify runs no hooks for its own errors, such as a malformed URL. The work of the hooks is repeated here.
    frameworkErrors: (error, request, reply) => {
      request.startedAt = performance.now();
      http.kit.lastRequestAt = request.startedAt;
      setRequestIds(request, reply, random);
      sendError(error, request, reply, logger);
      account(request, reply.statusCode);
    },
  });
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
  registerRoutes(http);
  http.decorateRequest('startedAt', 0);
  http.decorateRequest('traceId', '');
  http.decorateRequest('spanId', '');
  http.decorateRequest('caller', null);
  http.decorateRequest('routeLabel', null);
  parseJsonStrictly(http);
  beginRequests(http);
  http.setErrorHandler((error, request, reply) => sendError(error, request, reply, logger));
  answerUnknownRoutes(http);
  keepProtocol(server, random, options.bodyIdleMs);
  refuseEncodedBodies(http);
  continueWhenWanted(http);
  drainOnClose(http);
  const serve = options.listener?.(http) ?? http.routing;
  server.on('request', refuseOtherProtocols(http.kit, random, serve));
  return http;
}

function registerRoutes(http: Http): void {
  http.addHook('onRoute', (route) => {
    const { method, url } = route;
    route.onResponse = withAccounting(route.onResponse, http.kit.account);
    // Fastify adds a `HEAD` route for each `GET` route. The `HEAD` routes are skipped here, because `allowedMethods`
    // adds `HEAD` itself.
    for (const name of [method].flat())
      if (name !== 'HEAD') http.kit.routes.push({ method: name, path: url });
  });
}

function beginRequests(http: Http): void {
  const { random, checkHost } = http.kit;
  http.addHook('onRequest', (request, reply, done) => {
    request.startedAt = performance.now();
    http.kit.lastRequestAt = request.startedAt;
    setRequestIds(request, reply, random);
    // Prevents browsers from interpreting JSON as a script or page.
    reply.header('x-content-type-options', 'nosniff');
    try {
      requireValidRequest(request.raw, checkHost);
      done();
    } catch (error) {
      done(error as Error);
    }
  });
}

function answerUnknownRoutes(http: Http): void {
  // Rejects unknown routes before the body is read.
  http.addHook('preParsing', (request, reply, _payload, done) => {
    if (!request.is404) return done();
    reply.raw.once('finish', () => http.kit.account(request, reply.statusCode));
    done(isServerOptions(request) ? null : notFound(request.method, pathOf(request.url), http.kit.routes));
  });
  http.setNotFoundHandler((_request, reply) =>
    reply.code(204).header('allow', 'GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS').send(),
  );
}

/** Returns the `onResponse` hooks of a route, followed by a hook that counts and logs the request. */
function withAccounting(
  own: RouteOptions['onResponse'],
  account: HttpKit['account'],
): onResponseHookHandler[] {
  const count: onResponseHookHandler = (request, reply, done) => {
    account(request, reply.statusCode);
    done();
  };
  return [...[own ?? []].flat(), count];
}

/** Returns true for `OPTIONS *`, which applies to the server as a whole (RFC 9110 9.3.7). */
function isServerOptions({ raw, method }: FastifyRequest): boolean {
  return raw.url === '*' && method === 'OPTIONS';
}

function notFound(method: string, path: string, routes: readonly RegisteredRoute[]): PlatformError {
  const allow = allowedMethods(routes, path);
  if (allow.length === 0 || allow.includes(method)) {
    return new PlatformError(
      'NOT_FOUND',
      `${method} ${path} does not exist. See /openapi.json for all routes.`,
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
    // JSON that is expensive to parse is rejected. For example, 10 MB of empty arrays would block the event loop for
    // seconds.
    const factor = Math.max(1, Math.ceil(request.routeOptions.bodyLimit / BODY_LIMIT_BYTES));
    const problem = findCostProblem(text, LIMITS.jsonDepth, factor);
    if (problem)
      return done(
        new PlatformError(
          'VALIDATION_ERROR',
          `The body is JSON ${problem}. Send less data, or nest it less deeply.`,
        ),
      );
    try {
      done(null, JSON.parse(text));
    } catch (error) {
      done(new PlatformError('VALIDATION_ERROR', `The body is not valid JSON: ${(error as Error).message}`));
    }
  });
}
