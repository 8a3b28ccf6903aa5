import type { FastifyRequest } from 'fastify';
import { ANONYMOUS_HOST, type Caller, HEADERS, NamespaceId } from '../contracts/index.ts';
import { PlatformError } from '../kit/errors.ts';
import { safeEqual, serviceKey } from '../kit/keys.ts';
import type { Logger } from '../kit/logger.ts';
import { isLoopbackHost } from './host-check.ts';
import type { Authenticate } from './server.ts';

export interface UpstreamIdentityOptions {
  internalSecret: string;
  /** `required`: only the gateway and other daemons are let in. `optional` (development): a direct call is its `X-Tenant-ID`, else `default`. */
  mode: 'optional' | 'required';
  /** Pages of these origins may call without the service key: `gateway.cors.origins`. Default: none. */
  allowedOrigins?: readonly string[];
  logger: Logger;
}

/**
 * Who calls a daemon behind the gateway. The gateway's word (tenant, host) counts only with the service key,
 * so that a client that reaches the port cannot pose as a tenant. @spec Authentication 11, 12
 */
export function upstreamIdentity(options: UpstreamIdentityOptions): Authenticate {
  const { internalSecret, mode, logger, allowedOrigins = [] } = options;
  const expected = serviceKey(internalSecret);
  const allowed = new Set(allowedOrigins.map((origin) => origin.replace(/\/$/, '')));
  return (request: FastifyRequest): Caller => {
    const shown = request.headers[HEADERS.serviceKey];
    const trusted = typeof shown === 'string' && safeEqual(shown, expected);
    if (shown !== undefined && !trusted) {
      reportRefused(logger, request, 'SERVICE_KEY_WRONG');
      throw new PlatformError('UNAUTHORIZED', 'The service key is wrong.');
    }
    if (!trusted && mode === 'required') {
      reportRefused(logger, request, 'SERVICE_KEY_MISSING');
      throw new PlatformError(
        'UNAUTHORIZED',
        'This service takes calls from the gateway and other services alone; call the gateway with a Bearer token.',
      );
    }
    if (!trusted) refusePages(request, allowed, logger);
    return { hostId: hostOf(request, trusted), namespaceId: tenantOf(request) };
  };
}

/** What browsers say of a request that a page of another origin makes; also of images and links, which bring no `Origin`. */
const OTHER_SITES = new Set<unknown>(['cross-site', 'same-site']);

/**
 * Refuses calls of pages of other origins. A browser sends GETs and plain POSTs of any page to this port, although it
 * keeps the answer from the page. Programs send neither `Origin` nor `Sec-Fetch-Site`.
 */
function refusePages(request: FastifyRequest, allowed: ReadonlySet<string>, logger: Logger): void {
  const { origin, host, referer } = request.headers;
  const page = origin ?? originOf(referer);
  if (page !== undefined && allowed.has(page)) return;
  const isForeign = origin !== undefined && !isOwn(origin, host);
  if (!isForeign && !OTHER_SITES.has(request.headers['sec-fetch-site'])) return;
  reportRefused(logger, request, 'FOREIGN_ORIGIN');
  throw new PlatformError(
    'FORBIDDEN',
    `A page of ${page?.slice(0, 100) ?? 'another site'} may not call this service; call the gateway with a Bearer token, and list the page under gateway.cors.origins.`,
  );
}

function originOf(referer: string | undefined): string | undefined {
  return referer !== undefined && URL.canParse(referer) ? new URL(referer).origin : undefined;
}

/** Of this machine, or of this service: its own description has a form that calls it. */
function isOwn(origin: string, host: string | undefined): boolean {
  if (!URL.canParse(origin)) return false;
  const page = new URL(origin);
  return isLoopbackHost(page.hostname) || page.host === host;
}

/** @spec Diagnostic events: every auth failure produces one */
function reportRefused(logger: Logger, request: FastifyRequest, reasonCode: string): void {
  const { id: requestId, traceId, ip } = request;
  logger.diagnostic(
    {
      domain: 'auth',
      event: 'auth.failed',
      level: 'warn',
      reasonCode,
      message: `A direct call from ${ip} was refused`,
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

function tenantOf(request: FastifyRequest): string {
  const sent = request.headers[HEADERS.tenant];
  if (sent === undefined) return 'default';
  const tenant = NamespaceId.safeParse(sent);
  if (!tenant.success)
    throw new PlatformError('VALIDATION_ERROR', `X-Tenant-ID ${tenant.error.issues[0]?.message}.`);
  return tenant.data;
}

/** The headers by which one daemon shows another on whose behalf it calls. */
export function serviceHeaders(internalSecret: string, caller?: Partial<Caller>): Record<string, string> {
  return {
    [HEADERS.serviceKey]: serviceKey(internalSecret),
    ...(caller?.namespaceId ? { [HEADERS.tenant]: caller.namespaceId } : {}),
    ...(caller?.hostId ? { [HEADERS.host]: caller.hostId } : {}),
  };
}
