import type { FastifyRequest } from 'fastify';
import {
  ANONYMOUS_HOST,
  CALL_VIA,
  type Caller,
  type CallVia,
  HEADERS,
  NamespaceId,
  Role,
} from '../contracts/index.ts';
import { isLoopbackHost } from '../kit/config/loopback.ts';
import { PlatformError } from '../kit/errors/errors.ts';
import { safeEqual, serviceKey } from '../kit/security/keys.ts';
import type { Logger } from '../kit/telemetry/logger.ts';
import type { Authenticate } from './http-kit.ts';

export interface UpstreamIdentityOptions {
  internalSecret: string;
  /**
   * `required` accepts only calls with the service key. `optional` also accepts other calls, whose `X-Tenant-ID` header
   * selects the tenant.
   */
  mode: 'optional' | 'required';
  /**
   * Browser origins that are allowed to call without the service key, from `gateway.cors.origins`. The default is an
   * empty list.
   */
  allowedOrigins?: readonly string[];
  logger: Logger;
}

/**
 * Authenticates calls to a service behind the gateway. In mode `required`, a client without the service key cannot
 * impersonate a tenant. The host id is trusted only together with the service key. @spec Authentication 11, 12
 */
export function upstreamIdentity(options: UpstreamIdentityOptions): Authenticate {
  const { internalSecret, mode, logger, allowedOrigins = [] } = options;
  const expected = serviceKey(internalSecret);
  const allowed = new Set(allowedOrigins.map((origin) => origin.replace(/\/$/, '')));
  return (request: FastifyRequest): Caller => {
    const receivedKey = request.headers[HEADERS.serviceKey];
    const trusted = typeof receivedKey === 'string' && safeEqual(receivedKey, expected);
    if (receivedKey !== undefined && !trusted) {
      reportRefused(logger, request, 'SERVICE_KEY_WRONG');
      throw new PlatformError('UNAUTHORIZED', 'The service key is wrong.');
    }
    if (!trusted && mode === 'required') {
      reportRefused(logger, request, 'SERVICE_KEY_MISSING');
      throw new PlatformError(
        'UNAUTHORIZED',
        'This service accepts calls from the gateway and other services only. Call the gateway with a Bearer token.',
      );
    }
    if (!trusted) {
      refuseForeignPages(request, allowed, logger);
      // Only services know in whose handler a call was made.
      delete request.headers[HEADERS.deliveryId];
    }
    const caller = { hostId: hostOf(request, trusted), namespaceId: tenantOf(request) };
    if (!trusted) return caller;
    const isAdministrator = request.headers[HEADERS.administrator] === 'true';
    return { ...caller, role: roleOf(request), isAdministrator, via: viaOf(request) };
  };
}

/**
 * `Sec-Fetch-Site` values of requests from other sites. This header is checked because requests for images and links
 * have no `Origin`.
 */
const OTHER_SITES = new Set<unknown>(['cross-site', 'same-site']);

/**
 * Rejects requests from web pages of other origins. Without CORS headers, a browser hides the response from the page,
 * but still sends simple requests.
 */
function refuseForeignPages(request: FastifyRequest, allowed: ReadonlySet<string>, logger: Logger): void {
  const { origin, host, referer } = request.headers;
  const page = origin ?? originOf(referer);
  if (page !== undefined && allowed.has(page)) return;
  const isForeign = origin !== undefined && !isOwn(origin, host);
  if (!isForeign && !OTHER_SITES.has(request.headers['sec-fetch-site'])) return;
  reportRefused(logger, request, 'FOREIGN_ORIGIN');
  throw new PlatformError(
    'FORBIDDEN',
    `A page from ${page?.slice(0, 100) ?? 'another site'} may not call this service. Call the gateway with a Bearer token, and add the origin to gateway.cors.origins.`,
  );
}

function originOf(referer: string | undefined): string | undefined {
  return referer !== undefined && URL.canParse(referer) ? new URL(referer).origin : undefined;
}

/**
 * Returns true for origins on this machine, and for the service's own origin, from which the `/docs` page sends
 * requests.
 */
function isOwn(origin: string, host: string | undefined): boolean {
  if (!URL.canParse(origin)) return false;
  const page = new URL(origin);
  return isLoopbackHost(page.hostname) || page.host === host;
}

/** Logs a refused call. @spec Diagnostic events: every auth failure produces one event */
function reportRefused(logger: Logger, request: FastifyRequest, reasonCode: string): void {
  const { id: requestId, traceId, ip } = request;
  logger.diagnostic(
    {
      domain: 'auth',
      event: 'auth.failed',
      level: 'warn',
      reasonCode,
      message: `Direct call from ${ip} refused`,
      outcome: 'refused',
      evidence: { ip },
    },
    { requestId, traceId },
  );
}

function hostOf(request: FastifyRequest, trusted: boolean): string {
  const host = request.headers[HEADERS.host];
  return trusted && typeof host === 'string' && host !== '' ? host : ANONYMOUS_HOST;
}

function roleOf(request: FastifyRequest): Caller['role'] {
  const sent = request.headers[HEADERS.role];
  return sent === undefined ? undefined : (Role.safeParse(sent).data ?? null);
}

function viaOf(request: FastifyRequest): CallVia | undefined {
  const sent = request.headers[HEADERS.via];
  return CALL_VIA.find((via) => via === sent);
}

function tenantOf(request: FastifyRequest): string {
  const sent = request.headers[HEADERS.tenant];
  if (sent === undefined) return 'default';
  const tenant = NamespaceId.safeParse(sent);
  if (!tenant.success)
    throw new PlatformError('VALIDATION_ERROR', `X-Tenant-ID ${tenant.error.issues[0]?.message}.`);
  return tenant.data;
}

/** Returns the headers that authenticate a service and identify the original caller of the request. */
export function serviceHeaders(
  internalSecret: string,
  caller?: Partial<Pick<Caller, 'namespaceId' | 'hostId' | 'role' | 'isAdministrator' | 'via'>>,
): Record<string, string> {
  return {
    [HEADERS.serviceKey]: serviceKey(internalSecret),
    ...(caller?.namespaceId ? { [HEADERS.tenant]: caller.namespaceId } : {}),
    ...(caller?.hostId ? { [HEADERS.host]: caller.hostId } : {}),
    ...(caller?.role === undefined ? {} : { [HEADERS.role]: caller.role ?? 'none' }),
    ...(caller?.isAdministrator ? { [HEADERS.administrator]: 'true' } : {}),
    ...(caller?.via ? { [HEADERS.via]: caller.via } : {}),
  };
}
