import { type Caller, type CallerAccess, LIMITS } from '../../../../contracts/index.ts';
import { createBoundedCache } from '../../../../kit/data/bounded-cache.ts';
import { REPEATED } from '../../../../kit/data/raw-headers.ts';
import { PlatformError } from '../../../../kit/errors/errors.ts';
import type { Logger } from '../../../../kit/telemetry/logger.ts';
import type { Clock } from '../../../../kit/time/clock.ts';
import { minutes, seconds } from '../../../../kit/time/duration.ts';
import { OAuthRefusal, type VerifyOAuth } from '../../../oauth/verifier.ts';
import type { AccessSubject } from '../access/access-rights.ts';
import { type AuthFault, authorizationOf, bearerToken, isCanonicalJwt } from './bearer.ts';
import type { Claims, Jwts } from './jwt.ts';
import type { SessionCookie } from './session-cookie.ts';
import { isStaticLogin, type StaticTokens } from './static-tokens.ts';

/** An authenticated caller, with data of its token. */
export interface Principal extends Caller {
  kind: 'static' | 'access' | 'container' | 'oauth' | 'oidc';
  /** Id of the JWT, or null if the token has no id. */
  jti: string | null;
  /** Id of the login to which an access token belongs, or undefined if there is no login. */
  sid?: string | undefined;
  /** Expiry in epoch ms, or `Infinity` for static tokens. */
  expiresAt: number;
  /** Claims of the identity provider. */
  claims?: AccessSubject['claims'];
}

/** Request data that authentication uses. */
export interface Subject {
  rawHeaders: readonly string[];
  requestId: string;
  traceId: string;
  ip: string;
}

export interface Authenticator {
  /**
   * Authenticates the caller. Returns synchronously if the token is cached. If the authentication fails, logs the
   * reason and throws or rejects with UNAUTHORIZED.
   */
  authenticate(subject: Subject): Principal | Promise<Principal>;
  /** Clears the cache, so that each token is verified again at its next use. */
  clearCache(): void;
}

export interface AuthenticatorDeps {
  staticTokens: StaticTokens;
  jwts: Jwts;
  revocations: { isRevoked(principal: Principal): boolean };
  /** Roles and scopes. Synchronous, because they are cached in memory. */
  rights: { of(principal: Principal): CallerAccess | undefined };
  /** Throws SERVICE_UNAVAILABLE while revocations by other processes cannot be read. */
  requireFresh(): void;
  /** Returns the claims of a person's session, or undefined if the config no longer names its identity provider. */
  claimsOfSession(login: string | undefined, roleValues: readonly string[]): Principal['claims'] | undefined;
  /** Verifies tokens of the issuer in `gateway.oauth`. Undefined if no issuer is configured. */
  verifyOAuth: VerifyOAuth | undefined;
  sessionCookie: Pick<SessionCookie, 'read'>;
  clock: Clock;
  logger: Logger;
}

const REMEMBERED_TOKENS = 10_000;
/**
 * Cache TTL for credentials that can be revoked out of band, in ms. Such credentials are static tokens and the keys of
 * an OAuth issuer.
 */
const RECHECK_MS: Partial<Record<Principal['kind'], number>> = { static: seconds(30), oauth: minutes(1) };

interface Remembered {
  principal: Principal;
  /** Monotonic time at which the token is verified again. */
  recheckAt: number;
}

/**
 * Authenticates callers by static token or JWT. Verified tokens are cached by header value, so that repeated calls need
 * no signature check. Cache hits check the expiry, and revocations clear the cache. @spec Authentication 1
 */
export function createAuthenticator(deps: AuthenticatorDeps): Authenticator {
  const { staticTokens, jwts, revocations, rights, requireFresh, verifyOAuth, sessionCookie } = deps;
  const { claimsOfSession, clock, logger } = deps;
  const remembered = createBoundedCache<Remembered>(REMEMBERED_TOKENS);

  async function resolve(token: string): Promise<Principal | AuthFault> {
    const found = await staticTokens.find(token);
    if (found) return { ...found, kind: 'static', jti: null, expiresAt: Number.POSITIVE_INFINITY };
    const claims = await jwts.verify(token);
    if (claims === 'UNKNOWN_TOKEN' && verifyOAuth && isCanonicalJwt(token))
      return resolveOAuth(verifyOAuth, token);
    if (typeof claims === 'string') return claims;
    if (claims.typ === 'oidc') return resolveSession(claims);
    const isGone = isStaticLogin(claims.sid) && !(await staticTokens.hasLogin(claims.sid));
    return isGone ? 'TOKEN_REVOKED' : principalOf(claims);
  }

  function resolveSession({ roleValues = [], ...claims }: Claims): Principal | AuthFault {
    const found = claimsOfSession(claims.sid, roleValues);
    return found ? { ...principalOf(claims), claims: found } : 'TOKEN_REVOKED';
  }

  async function verify(header: string, subject: Subject): Promise<Principal> {
    const token = bearerToken(header);
    if (token === undefined) throw refused('MALFORMED_AUTHORIZATION', subject);
    const found = await resolve(token);
    if (typeof found === 'string') throw refused(found, subject);
    // There must be no `await` between here and the caching. Otherwise, a revocation or a change of roles in between
    // would be missed.
    if (revocations.isRevoked(found)) throw refused('TOKEN_REVOKED', subject, found);
    const access = rights.of(found);
    // The person of a session has lost the last role. Without this check, a caller without roles would have all rights.
    if (found.kind === 'oidc' && !access?.roles?.size) throw refused('TOKEN_REVOKED', subject, found);
    const principal = access ? { ...found, access } : found;
    const recheckMs = RECHECK_MS[isStaticLogin(principal.sid) ? 'static' : principal.kind];
    const recheckAt = recheckMs === undefined ? Number.POSITIVE_INFINITY : clock.monotonic() + recheckMs;
    remembered.set(header, { principal, recheckAt });
    return principal;
  }

  function refused(fault: AuthFault, subject: Subject, principal?: Principal): PlatformError {
    report(logger, fault, subject, principal);
    return new PlatformError('UNAUTHORIZED', MESSAGES[fault], { headers: { 'www-authenticate': 'Bearer' } });
  }

  /** Returns the header that stands for the studio session of a call, or undefined without a session. */
  function fromCookie(subject: Subject): string | undefined {
    const read = sessionCookie.read(subject.rawHeaders);
    if (read === undefined) return undefined;
    if ('fault' in read) throw refused(read.fault, subject);
    return `Bearer ${read.token}`;
  }

  function remember(header: string): Principal | undefined {
    const hit = remembered.get(header);
    if (!hit || hit.principal.expiresAt <= clock.now() || hit.recheckAt <= clock.monotonic())
      return undefined;
    return hit.principal;
  }

  return {
    authenticate(subject) {
      const header = authorizationOf(subject.rawHeaders) ?? fromCookie(subject);
      if (header === undefined) throw refused('MISSING_AUTHORIZATION', subject);
      if (header === REPEATED) throw refused('DUPLICATE_AUTHORIZATION', subject);
      requireFresh();
      return remember(header) ?? verify(header, subject);
    },
    clearCache: () => remembered.clear(),
  };
}

/** Most faults have the same response, so that the response does not help attackers. The exact fault is only logged. */
const INVALID = 'The token is not valid; get a new one with POST /auth/token or `svc login`.';
const MESSAGES: Record<AuthFault, string> = {
  MISSING_AUTHORIZATION: 'This request needs a token; send it as "Authorization: Bearer <token>".',
  CSRF_TOKEN_INVALID:
    'A call with a studio session needs its CSRF token in the x-svc-csrf header. Reload the studio, or send a token in the Authorization header.',
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

/**
 * Verifies a token of the OAuth issuer. Messages of the verifier contain the issuer and claims, so these messages are
 * only logged.
 */
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

/** Logs a failed authentication as a diagnostic event. @spec Authentication 13 */
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
  CSRF_TOKEN_INVALID: 'a session cookie without the CSRF token of its session',
  DUPLICATE_AUTHORIZATION: 'several Authorization headers',
  MALFORMED_AUTHORIZATION: 'a malformed Authorization header',
  UNKNOWN_TOKEN: 'an unknown token',
  JWT_SIGNATURE_INVALID: 'a JWT with a wrong signature',
  JWT_KEY_UNKNOWN: 'a JWT signed by a key that its issuer does not publish',
  JWT_EXPIRED: 'an expired JWT',
  JWT_NOT_ACTIVE: 'a JWT that is not valid yet',
  JWT_CLAIMS_INVALID: 'a JWT that lacks a claim or has a wrong one',
  TOKEN_REVOKED: 'a revoked token',
};
