import type { Caller } from '../../../../contracts/index.ts';
import { LIMITS } from '../../../../contracts/index.ts';
import { createBoundedCache } from '../../../../kit/bounded-cache.ts';
import type { Clock } from '../../../../kit/clock.ts';
import { minutes, seconds } from '../../../../kit/duration.ts';
import { PlatformError } from '../../../../kit/errors.ts';
import type { Logger } from '../../../../kit/logger.ts';
import { OAuthRefusal, type VerifyOAuth } from '../../../oauth/verifier.ts';
import { REPEATED } from '../raw-headers.ts';
import { type AuthFault, authorizationOf, bearerToken, isCanonicalJwt } from './bearer.ts';
import type { Claims, Jwts } from './jwt.ts';
import type { StaticTokens } from './static-tokens.ts';

/** Who calls, and by which token. */
export interface Principal extends Caller {
  kind: 'static' | 'access' | 'container' | 'oauth';
  /** The JWT's id, where it has one. */
  jti: string | null;
  /** The login that an access token came of, where it came of one. */
  sid?: string | undefined;
  /** Epoch ms from which on it is refused; infinite for static tokens. */
  expiresAt: number;
}

/** The request as far as authentication looks at it. */
export interface Subject {
  rawHeaders: readonly string[];
  requestId: string;
  traceId: string;
  ip: string;
}

export interface Authenticator {
  /** The caller of a token seen before and still in force; undefined: `authenticate` has to find out. */
  recall(rawHeaders: readonly string[]): Principal | undefined;
  /** Who calls; at once for a token seen before, else a promise. Throws or rejects with UNAUTHORIZED, and logs why. */
  authenticate(subject: Subject): Principal | Promise<Principal>;
  /** Forgets what it verified: the next call of each token is checked anew. */
  forget(): void;
}

export interface AuthenticatorDeps {
  staticTokens: StaticTokens;
  jwts: Jwts;
  revocations: { isRevoked(principal: Principal): boolean };
  /** Of the issuer in `gateway.oauth`, where there is one. */
  verifyOAuth: VerifyOAuth | undefined;
  clock: Clock;
  logger: Logger;
}

const REMEMBERED_TOKENS = 10_000;
/** How long what may be withdrawn without our knowing is not looked up again: a static token, an issuer's key. */
const RECHECK_MS: Partial<Record<Principal['kind'], number>> = { static: seconds(30), oauth: minutes(1) };

interface Remembered {
  principal: Principal;
  /** When to verify again, on the monotonic clock. */
  recheckAt: number;
}

/**
 * Resolves callers by static token or JWT. Verified tokens are remembered by their whole header value: a proxied call
 * then costs a map look-up instead of a signature. Expiry is looked at on each hit, and a revocation empties the memory.
 * @spec Authentication 1
 */
export function createAuthenticator(deps: AuthenticatorDeps): Authenticator {
  const { staticTokens, jwts, revocations, verifyOAuth, clock, logger } = deps;
  const remembered = createBoundedCache<Remembered>(REMEMBERED_TOKENS);

  async function resolve(token: string): Promise<Principal | AuthFault> {
    const found = await staticTokens.find(token);
    if (found) return { ...found, kind: 'static', jti: null, expiresAt: Number.POSITIVE_INFINITY };
    const claims = await jwts.verify(token);
    if (claims === 'UNKNOWN_TOKEN' && verifyOAuth && isCanonicalJwt(token))
      return resolveOAuth(verifyOAuth, token);
    return typeof claims === 'string' ? claims : principalOf(claims);
  }

  async function verify(header: string, subject: Subject): Promise<Principal> {
    const token = bearerToken(header);
    if (token === undefined) throw refused('MALFORMED_AUTHORIZATION', subject);
    const principal = await resolve(token);
    if (typeof principal === 'string') throw refused(principal, subject);
    // Between this look and the next line nothing runs, so that a revocation cannot slip in and be forgotten.
    if (revocations.isRevoked(principal)) throw refused('TOKEN_REVOKED', subject, principal);
    const recheckMs = RECHECK_MS[principal.kind];
    const recheckAt = recheckMs === undefined ? Number.POSITIVE_INFINITY : clock.monotonic() + recheckMs;
    remembered.set(header, { principal, recheckAt });
    return principal;
  }

  function refused(fault: AuthFault, subject: Subject, principal?: Principal): PlatformError {
    report(logger, fault, subject, principal);
    return new PlatformError('UNAUTHORIZED', MESSAGES[fault], { headers: { 'www-authenticate': 'Bearer' } });
  }

  function remember(header: string): Principal | undefined {
    const hit = remembered.get(header);
    if (!hit || hit.principal.expiresAt <= clock.now() || hit.recheckAt <= clock.monotonic())
      return undefined;
    return hit.principal;
  }

  return {
    recall(rawHeaders) {
      const header = authorizationOf(rawHeaders);
      return typeof header === 'string' ? remember(header) : undefined;
    },
    authenticate(subject) {
      const header = authorizationOf(subject.rawHeaders);
      if (header === undefined) throw refused('MISSING_AUTHORIZATION', subject);
      if (header === REPEATED) throw refused('DUPLICATE_AUTHORIZATION', subject);
      return remember(header) ?? verify(header, subject);
    },
    forget: () => remembered.clear(),
  };
}

/** What the caller reads; how a token failed stays in our log, where it helps the operator and no guesser. */
const INVALID = 'The token is not valid here; get a new one with POST /auth/token or `svc login`.';
const MESSAGES: Record<AuthFault, string> = {
  MISSING_AUTHORIZATION: 'This needs a token; send it as "Authorization: Bearer <token>".',
  DUPLICATE_AUTHORIZATION: 'There is more than one Authorization header; send exactly one.',
  MALFORMED_AUTHORIZATION:
    'The Authorization header must read "Bearer <token>", with one space and no other scheme.',
  UNKNOWN_TOKEN: INVALID,
  JWT_SIGNATURE_INVALID: INVALID,
  JWT_KEY_UNKNOWN: INVALID,
  JWT_NOT_ACTIVE: INVALID,
  JWT_CLAIMS_INVALID: INVALID,
  JWT_EXPIRED: 'The token has expired; get a new one with POST /auth/refresh or POST /auth/token.',
  TOKEN_REVOKED: INVALID,
};

/** Its messages name issuer and claims, which is for the log: they stay behind. */
async function resolveOAuth(verifyOAuth: VerifyOAuth, token: string): Promise<Principal | AuthFault> {
  try {
    return { ...(await verifyOAuth(token)), kind: 'oauth', jti: null };
  } catch (error) {
    if (error instanceof OAuthRefusal) return error.fault;
    throw error;
  }
}

function principalOf({ hostId, namespaceId, typ, exp, jti, sid }: Claims): Principal {
  const expiresAt = (exp + LIMITS.jwtClockToleranceSeconds) * 1000;
  return { hostId, namespaceId, kind: typ, jti: jti ?? null, sid, expiresAt };
}

/** @spec Authentication 13: each failure is logged as a diagnostic event */
function report(
  logger: Logger,
  fault: AuthFault,
  { requestId, traceId, ip }: Subject,
  principal?: Principal,
): void {
  logger.diagnostic(
    {
      domain: 'auth',
      event: 'auth.failed',
      level: 'warn',
      reasonCode: fault,
      message: `A call from ${ip} was refused: ${REASONS[fault]}`,
      outcome: 'refused',
      evidence: { ip, ...(principal ? { hostId: principal.hostId, jti: principal.jti } : {}) },
    },
    { requestId, traceId },
  );
}

const REASONS: Record<AuthFault, string> = {
  MISSING_AUTHORIZATION: 'no Authorization header',
  DUPLICATE_AUTHORIZATION: 'several Authorization headers',
  MALFORMED_AUTHORIZATION: 'a malformed Authorization header',
  UNKNOWN_TOKEN: 'no token that is accepted here',
  JWT_SIGNATURE_INVALID: 'a JWT with a wrong signature',
  JWT_KEY_UNKNOWN: 'a JWT signed by a key that its issuer does not publish',
  JWT_EXPIRED: 'an expired JWT',
  JWT_NOT_ACTIVE: 'a JWT that is not valid yet',
  JWT_CLAIMS_INVALID: 'a JWT that lacks a claim or has a wrong one',
  TOKEN_REVOKED: 'a revoked token',
};
