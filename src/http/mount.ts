import type { FastifyReply, FastifyRequest } from 'fastify';
import type { z } from 'zod';
import {
  ANONYMOUS_HOST,
  type Caller,
  type Endpoint,
  LIMITS,
  type ReplyInput,
  type Validated,
} from '../contracts/index.ts';
import { keysAt } from '../kit/data/schema-keys.ts';
import { problemsOf } from '../kit/data/schema-problems.ts';
import { PlatformError } from '../kit/errors/errors.ts';
import type { RateVerdict, SharedLimiter } from '../kit/limits/rate-limiter.ts';
import { minutes } from '../kit/time/duration.ts';
import type { Authenticate, Http } from './http-kit.ts';

/** A limiter and its limit, shared by several endpoints whose calls are counted together. */
export interface SharedLimit {
  limiter: SharedLimiter;
  limit: number;
}

export interface MountOptions {
  /** `caller` requires authentication. `open` accepts requests without authentication. */
  auth: 'caller' | 'open';
  /** Authenticates the callers of this endpoint. The default is the authentication of the service. */
  authenticate?: Authenticate;
  /** Maximum calls per minute and namespace, or a limiter shared with other endpoints. */
  perMinute?: number | SharedLimit;
  /** The default is the body limit of the service, or the smaller `LIMITS.openBodyBytes` for `open` endpoints. */
  bodyLimitBytes?: number;
}

export type EndpointContext<E extends Endpoint> = Validated<E> & {
  caller: Caller;
  request: FastifyRequest;
  reply: FastifyReply;
};

/** Returns the response body, or `reply` if the handler sends the response itself. */
export type EndpointHandler<E extends Endpoint> = (
  context: EndpointContext<E>,
) => Promise<ReplyInput<E> | FastifyReply> | ReplyInput<E>;

const ANONYMOUS: Caller = { hostId: ANONYMOUS_HOST, namespaceId: 'default' };

/**
 * Registers the route of an endpoint. Before the handler runs, each request is authenticated and rate limited as
 * `options` specify, and validated.
 */
export function mount<E extends Endpoint>(
  http: Http,
  endpoint: E,
  options: MountOptions,
  handler: EndpointHandler<E>,
): void {
  const { kit } = http;
  const limit = limitOf(options.perMinute, endpoint, http);
  const bodyLimit = options.bodyLimitBytes ?? (options.auth === 'open' ? LIMITS.openBodyBytes : undefined);
  kit.endpoints.push({
    method: endpoint.method,
    path: endpoint.path,
    endpoint,
    authenticated: options.auth === 'caller',
  });
  http.route({
    method: endpoint.method,
    url: endpoint.path,
    ...(bodyLimit === undefined ? {} : { bodyLimit }),
    ...(options.auth === 'caller'
      ? {
          onRequest: async (request: FastifyRequest, reply: FastifyReply) => {
            request.caller = await (options.authenticate ?? kit.authenticate)(request, reply);
          },
        }
      : {}),
    async handler(request, reply) {
      const caller = request.caller ?? ANONYMOUS;
      const counted = limit?.(caller);
      if (counted) await counted;
      const input = {
        params: parse(endpoint.params, request.params, 'params'),
        query: parse(endpoint.query, request.query, 'query'),
        body: parse(endpoint.body, request.body, 'body'),
      } as Validated<E>;
      const result = await handler({ ...input, caller, request, reply });
      if (reply.sent) return reply;
      return reply.code(endpoint.status ?? 200).send(result);
    },
  });
}

function parse(schema: z.ZodType | undefined, value: unknown, place: string): unknown {
  if (!schema) return undefined;
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  const issues = problemsOf(parsed.error.issues, value, (path) => keysAt(schema, path)).map((problem) => ({
    path: [place, ...problem.path.map(String)].join('.'),
    message: problem.message,
  }));
  const first = issues[0]!;
  const more = issues.length > 1 ? ` (and ${issues.length - 1} more, see details.issues)` : '';
  throw new PlatformError('VALIDATION_ERROR', `${first.path}: ${first.message}${more}`, {
    details: { issues },
  });
}

/**
 * Returns a function that counts a call and throws if the limit is reached. Returns undefined without `perMinute`. If
 * several processes share the limit, the function returns a promise.
 */
function limitOf(
  perMinute: MountOptions['perMinute'],
  { method, path }: Endpoint,
  http: Http,
): ((caller: Caller) => Promise<void> | undefined) | undefined {
  if (perMinute === undefined) return undefined;
  const shared: SharedLimit =
    typeof perMinute === 'number'
      ? { limiter: http.kit.createLimiter(`${method} ${path}`, { windowMs: minutes(1) }), limit: perMinute }
      : perMinute;
  const { limiter, limit } = shared;
  const requireAllowed = ({ allowed, resetMs }: RateVerdict): void => {
    if (!allowed) throw rateLimited(limit, resetMs);
  };
  return ({ namespaceId }) => {
    const taken = limiter.take(namespaceId, limit);
    if (taken instanceof Promise) return taken.then(requireAllowed);
    requireAllowed(taken);
    return undefined;
  };
}

/**
 * Returns the 429 error. `Retry-After` is the remaining time in seconds, rounded up so that a retry is not too early.
 */
export function rateLimited(limit: number, resetMs: number): PlatformError {
  const retryAfter = Math.max(1, Math.ceil(resetMs / 1000));
  return new PlatformError(
    'RATE_LIMIT_EXCEEDED',
    `The limit of ${limit} requests per minute is reached. Try again in ${retryAfter} s.`,
    {
      details: { limit, retryAfterSeconds: retryAfter },
      headers: { 'retry-after': String(retryAfter) },
    },
  );
}
