import type { FastifyReply, FastifyRequest } from 'fastify';
import { ANONYMOUS_HOST, type Caller, HEADERS } from '../../../contracts/index.ts';
import {
  abortOnDisconnect,
  CLIENT_CLOSED_REQUEST,
  type Http,
  type HttpKit,
  pathOf,
} from '../../../http/index.ts';
import { PlatformError } from '../../../kit/errors/errors.ts';
import type { RunOptions } from '../../../plugins/index.ts';
import { type OAuthFault, OAuthRefusal } from '../../oauth/verifier.ts';
import { PLUGIN_ROUTES_PREFIX, type PluginRoute } from '../../plugin-routes/route-table.ts';
import { answerTo, failureFor, type RouteAnswer } from '../domain/route-answer.ts';
import { requireSecurity, userOf } from '../domain/route-security.ts';
import type { RestServices } from '../services.ts';
import { createRouteStream } from './route-stream.ts';

const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'];

interface Found {
  route: PluginRoute;
  params: Record<string, string>;
}

/** Serves all plugin routes through one wildcard route. @spec Plugin routes */
export function pluginRoutes(http: Http, services: RestServices): void {
  const found = new WeakMap<FastifyRequest, Found>();
  http.route({
    method: METHODS,
    url: `${PLUGIN_ROUTES_PREFIX}*`,
    async onRequest(request) {
      const shown = oauthToken(services, request);
      const known = shown === undefined ? await http.kit.authenticate(request) : undefined;
      request.caller = known ?? null;
      const match = findRoute(services, request);
      request.routeLabel = match.pattern;
      // An OAuth token is verified here, so that callers with OAuth tokens can call this service without the gateway.
      const caller = known ?? (await callerBy(services, shown!, match.route, http, request));
      request.caller = caller;
      requireAllowed(http, match.route, caller, request);
      found.set(request, match);
    },
    handler: (request, reply) => serve(http, services, found.get(request)!, request, reply),
  });
}

/**
 * Returns the Bearer token of a call that bypassed the gateway. Returns undefined for other calls, or if no OAuth
 * issuer is configured.
 */
function oauthToken({ verifyOAuth }: RestServices, request: FastifyRequest): string | undefined {
  const { authorization } = request.headers;
  if (!verifyOAuth || authorization === undefined || request.headers[HEADERS.serviceKey] !== undefined)
    return undefined;
  return /^bearer +([^\s,]+)$/i.exec(authorization)?.[1];
}

/** Returns the caller. Routes that list `oauth` verify the OAuth token. Other routes ignore the token. */
async function callerBy(
  { verifyOAuth }: RestServices,
  token: string,
  { plugin, security }: PluginRoute,
  { kit }: Http,
  request: FastifyRequest,
): Promise<Caller> {
  if (!security?.includes('oauth')) return kit.authenticate(request);
  try {
    return await verifyOAuth!(token);
  } catch (error) {
    if (error instanceof OAuthRefusal)
      reportRefused(kit, request, { reasonCode: error.fault, pluginId: plugin.id, evidence: {} });
    throw error;
  }
}

function requireAllowed(
  { kit }: Http,
  { plugin, security }: PluginRoute,
  caller: Caller,
  request: FastifyRequest,
): void {
  try {
    requireSecurity(security, caller, request.headers[HEADERS.host] === ANONYMOUS_HOST);
  } catch (error) {
    const { hostId, namespaceId: tenantId } = caller;
    const isAnonymous = hostId === ANONYMOUS_HOST;
    // The tenant that an unauthenticated client names is unverified and must not be logged.
    if (isAnonymous) request.caller = null;
    const whose = { pluginId: plugin.id, ...(isAnonymous ? {} : { tenantId }) };
    reportRefused(kit, request, { reasonCode: 'ROUTE_SECURITY', ...whose, evidence: { hostId, security } });
    throw error;
  }
}

/** Logs each refusal as an authentication failure. @spec Diagnostic events; Plugin routes 8 */
function reportRefused(
  { logger }: HttpKit,
  request: FastifyRequest,
  refusal: {
    reasonCode: OAuthFault | 'ROUTE_SECURITY';
    pluginId: string;
    tenantId?: string;
    evidence: Record<string, unknown>;
  },
): void {
  const { id: requestId, traceId, spanId, ip } = request;
  const { reasonCode, evidence, ...whose } = refusal;
  logger.diagnostic(
    {
      domain: 'auth',
      event: 'auth.failed',
      level: 'warn',
      reasonCode,
      message: `A call of ${request.method} ${request.routeLabel} was refused`,
      outcome: 'refused',
      evidence: { ip, ...evidence },
    },
    { requestId, traceId, spanId, ...whose },
  );
}

function findRoute(services: RestServices, request: FastifyRequest): Found & { pattern: string } {
  const path = pathOf(request.url);
  const match = services.pluginRoutes.table.find(methodOf(request), path);
  if (match.found) return { route: match.target, params: match.params, pattern: match.pattern };
  if (match.allowed.length === 0) {
    if (path !== PLUGIN_ROUTES_PREFIX && !services.pluginRoutes.table.belongsToPlugin(path)) {
      throw new PlatformError(
        'PLUGIN_NOT_FOUND',
        `No loaded plugin has the path ${path}; list loaded plugins with \`svc plugins list\`.`,
      );
    }
    throw new PlatformError(
      'NOT_FOUND',
      `No loaded plugin has a route ${path}; list all with GET /api/v1/routes.`,
    );
  }
  const allow = match.allowed.join(', ');
  throw new PlatformError('METHOD_NOT_ALLOWED', `${path} supports ${allow}, not ${request.method}.`, {
    details: { method: request.method, allowed: match.allowed },
    headers: { allow },
  });
}

/** Returns the method to run. HEAD runs as GET without sending the body. */
function methodOf({ method }: FastifyRequest): string {
  return method === 'HEAD' ? 'GET' : method;
}

async function serve(
  http: Http,
  services: RestServices,
  { route, params }: Found,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<FastifyReply> {
  const caller = abortOnDisconnect(reply);
  const { signal } = caller;
  const stream = createRouteStream(reply, request.method === 'HEAD' ? caller : undefined);
  const operation = `${route.plugin.id} ${route.declaration.method} ${route.declaration.path}`;
  try {
    const answer = await services.observe(
      'plugins',
      operation,
      () => run(services, route, params, request, { signal, stream }),
      ({ status }) => status !== 200,
    );
    if (stream.started) {
      stream.end();
      http.kit.account(request, 200);
      return reply;
    }
    if (answer.undeclared) warnOfUndeclared(http, route, answer, request);
    // The result is serialized here, so that strings and null are sent as JSON too.
    return reply
      .code(answer.status)
      .type('application/json; charset=utf-8')
      .send(JSON.stringify(answer.body));
  } catch (error) {
    if (stream.started) {
      // The status is already sent, so an incomplete body is the only way to signal the error.
      stream.cut();
      http.kit.account(request, signal.aborted ? CLIENT_CLOSED_REQUEST : 500);
      return reply;
    }
    if (signal.aborted) {
      // Fastify neither counts nor logs a response whose client has disconnected.
      http.kit.account(request, CLIENT_CLOSED_REQUEST);
      return reply.hijack();
    }
    reportOutputFault(http, route, error, request);
    throw failureFor(error);
  }
}

async function run(
  { plugins, routeTimeoutMs }: RestServices,
  { plugin, declaration, timeoutMs }: PluginRoute,
  params: Record<string, string>,
  request: FastifyRequest,
  options: RunOptions,
): Promise<RouteAnswer> {
  const caller = request.caller as Caller;
  const { id: requestId, traceId } = request;
  const method = methodOf(request);
  const { input, output, permissions, handler, errors } = declaration;
  const result = await plugins.execute(
    {
      plugin,
      handler,
      host: 'rest',
      hostContext: { host: 'rest', method, path: pathOf(request.url), requestId },
      input: method === 'GET' || method === 'DELETE' ? { ...(request.query as object) } : request.body,
      params,
      user: userOf(caller),
      tenantId: caller.namespaceId,
      requestId,
      traceId,
      parentSpanId: request.spanId,
      schemas: { ...(input ? { input } : {}), ...(output ? { output } : {}) },
      timeoutMs: timeoutMs ?? routeTimeoutMs,
      ...(permissions ? { permissions } : {}),
    },
    options,
  );
  return answerTo(result, errors);
}

/** Logs a warning about an error code that the manifest does not declare. @spec Plugin routes 4 */
function warnOfUndeclared(
  http: Http,
  { plugin, declaration }: PluginRoute,
  { body }: RouteAnswer,
  request: FastifyRequest,
): void {
  const { code, message } = (body as { error: { code: string; message: string } }).error;
  http.kit.logger.warn(
    `${declaration.method} ${declaration.path} of ${plugin.id} failed with ${code}, which its manifest does not declare: ${message}`,
    {
      pluginId: plugin.id,
      requestId: request.id,
      traceId: request.traceId,
      meta: { code, handler: declaration.handler },
    },
  );
}

/** Reports an invalid result separately from exceptions. The plugin author must fix the handler or its schema. */
function reportOutputFault(
  http: Http,
  { plugin, declaration }: PluginRoute,
  error: unknown,
  request: FastifyRequest,
): void {
  const issues = error instanceof PlatformError ? error.details.outputIssues : undefined;
  if (issues === undefined) return;
  http.kit.logger.diagnostic(
    {
      domain: 'plugins',
      event: 'plugin.output_invalid',
      level: 'error',
      reasonCode: 'OUTPUT_SCHEMA',
      message: `${declaration.method} ${declaration.path} of ${plugin.id} returned a result that its output schema does not allow`,
      outcome: 'failed',
      evidence: { handler: declaration.handler, issues },
    },
    { pluginId: plugin.id, requestId: request.id, traceId: request.traceId },
  );
}
