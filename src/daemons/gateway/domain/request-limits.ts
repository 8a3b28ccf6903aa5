import type { IncomingHttpHeaders } from 'node:http';
import type { Caller, PlatformConfig } from '../../../contracts/index.ts';
import { rateLimited } from '../../../http/index.ts';
import { PlatformError } from '../../../kit/errors/errors.ts';
import type { CreateLimiter, RateVerdict, SharedLimiter } from '../../../kit/limits/rate-limiter.ts';
import { minutes } from '../../../kit/time/duration.ts';
import { tokenText } from './identity/bearer.ts';

/** Rate limit keys of a request, which are its token, its namespace and its IP address. */
export interface Counted {
  /**
   * Token without its scheme, or a key derived from the client's IP address. The derived key is used for requests
   * without a token.
   */
  token: string;
  namespaceId: string;
  ip: string;
}

/**
 * Flat list of names and values of the `RateLimit-*` headers. The headers describe the limit with the fewest remaining
 * requests.
 */
export type LimitHeaders = string[];

/**
 * Counts a request and returns the rate limit headers, or null if no limit applies. Throws RATE_LIMIT_EXCEEDED if a
 * limit is exceeded. The result is a promise if several processes share the counters.
 */
export type LimitRequests = (request: Counted) => LimitHeaders | null | Promise<LimitHeaders | null>;

/** Returns the rate limit keys of a request, which are its token, namespace and IP address. */
export function countedOf(
  { authorization }: IncomingHttpHeaders,
  { namespaceId }: Caller,
  ip: string,
): Counted {
  const token = authorization === undefined ? `(none) ${ip}` : tokenText(authorization);
  return { token, namespaceId, ip };
}

interface Rule {
  limiter: SharedLimiter;
  keyOf(request: Counted): string;
  /** Returns the maximum number of requests per minute, or null if there is no limit. */
  limitOf(request: Counted): number | null;
}

/**
 * Creates the rate limits per token, tenant and IP address. Returns null if no limit is configured. A tenant's own
 * `requestsPerMinute` replaces the common tenant limit. @spec Limits: gateway-wide limits
 */
export function createRequestLimits(
  { gateway, tenants }: Pick<PlatformConfig, 'gateway' | 'tenants'>,
  createLimiter: CreateLimiter,
): LimitRequests | null {
  const { perTokenPerMinute, perTenantPerMinute, perIpPerMinute } = gateway.rateLimit;
  const perTenant = new Map(
    Object.entries(tenants).map(([name, { requestsPerMinute }]) => [name, requestsPerMinute]),
  );
  const limiter = (name: string): SharedLimiter =>
    createLimiter(`requests per ${name}`, { windowMs: minutes(1) });
  const rules: Rule[] = [];
  if (perTokenPerMinute) {
    rules.push({ limiter: limiter('token'), keyOf: ({ token }) => token, limitOf: () => perTokenPerMinute });
  }
  if (perTenantPerMinute || [...perTenant.values()].some(Boolean)) {
    rules.push({
      limiter: limiter('tenant'),
      keyOf: ({ namespaceId }) => namespaceId,
      limitOf: ({ namespaceId }) => perTenant.get(namespaceId) ?? perTenantPerMinute,
    });
  }
  if (perIpPerMinute)
    rules.push({ limiter: limiter('address'), keyOf: ({ ip }) => ip, limitOf: () => perIpPerMinute });
  return rules.length === 0 ? null : (request) => count(rules, request);
}

/** Limit with the fewest remaining requests among the limits checked so far. */
type Tightest = { limit: number; remaining: number; resetMs: number } | undefined;

function count(
  rules: readonly Rule[],
  request: Counted,
  from = 0,
  before: Tightest = undefined,
): LimitHeaders | null | Promise<LimitHeaders | null> {
  let tightest = before;
  for (let i = from; i < rules.length; i++) {
    const { limiter, keyOf, limitOf } = rules[i]!;
    const limit = limitOf(request);
    if (limit === null) continue;
    const taken = limiter.take(keyOf(request), limit);
    if (taken instanceof Promise) {
      const known = tightest;
      return taken.then((verdict) => count(rules, request, i + 1, tighter(known, limit, verdict)));
    }
    tightest = tighter(tightest, limit, taken);
  }
  return tightest ? headersOf(tightest.limit, tightest.remaining, tightest.resetMs) : null;
}

function tighter(tightest: Tightest, limit: number, { allowed, remaining, resetMs }: RateVerdict): Tightest {
  if (!allowed) throw exceeded(limit, resetMs);
  return !tightest || remaining < tightest.remaining ? { limit, remaining, resetMs } : tightest;
}

function exceeded(limit: number, resetMs: number): PlatformError {
  const { code, message, details, headers } = rateLimited(limit, resetMs);
  const flat = headersOf(limit, 0, resetMs);
  const limits = Object.fromEntries(flat.flatMap((name, i) => (i % 2 === 0 ? [[name, flat[i + 1]!]] : [])));
  return new PlatformError(code, message, { details, headers: { ...headers, ...limits } });
}

function headersOf(limit: number, remaining: number, resetMs: number): LimitHeaders {
  const reset = String(Math.ceil(resetMs / 1000));
  return [
    'ratelimit-limit',
    String(limit),
    'ratelimit-remaining',
    String(remaining),
    'ratelimit-reset',
    reset,
  ];
}
