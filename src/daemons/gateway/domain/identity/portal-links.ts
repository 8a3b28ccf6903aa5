import { createHmac, createSecretKey, type KeyObject } from 'node:crypto';
import { errors, jwtVerify, SignJWT } from 'jose';
import { z } from 'zod';
import { ApplicationId, type Caller, NamespaceId, PORTAL_HOST_PREFIX } from '../../../../contracts/index.ts';
import { rateLimited } from '../../../../http/index.ts';
import { PlatformError } from '../../../../kit/errors/errors.ts';
import type { SharedLimiter } from '../../../../kit/limits/rate-limiter.ts';
import type { Random } from '../../../../kit/security/random.ts';
import type { Logger } from '../../../../kit/telemetry/logger.ts';
import type { Clock } from '../../../../kit/time/clock.ts';
import type { MintedTokenRecord, MintedTokenStore } from '../../../../store/ports/index.ts';
import type { Principal, Subject } from './authenticator.ts';
import { type AuthFault, authorizationOf, bearerToken, isCanonicalJwt } from './bearer.ts';
import type { Revocations } from './revocations.ts';

export interface PortalLinksDeps {
  store: MintedTokenStore;
  revocations: Revocations;
  /** Throws SERVICE_UNAVAILABLE while revocations by other processes cannot be read. */
  requireFresh(): void;
  internalSecret: string;
  /** Base of links, without a slash at the end. */
  origin: () => string;
  limiter: SharedLimiter;
  clock: Clock;
  random: Random;
  logger: Logger;
}

const ALGORITHM = 'HS256';
const AUDIENCE = 'portal';
/** Marks the tokens, so that the authenticator of other callers never reads them. */
const TOKEN_PREFIX = 'svcp_';
const LINK_ID_PREFIX = 'portal_';
const PAGE = 200;
/** Calls per minute of all links of an application. */
const MAX_CALLS_PER_MINUTE = 300;

const Claims = z.strictObject({
  aud: z.literal(AUDIENCE),
  namespaceId: NamespaceId,
  application: ApplicationId,
  jti: z.string().startsWith(LINK_ID_PREFIX),
  iat: z.number(),
  exp: z.number(),
});
type Claims = z.infer<typeof Claims>;

/** Caller with the token of a link. */
export interface PortalCaller extends Omit<Principal, 'kind'> {
  kind: 'portal';
  application: string;
}

/**
 * Links with which customers manage the endpoints of one application. Their tokens have a key of their own, so that no
 * other authentication accepts them. @spec docs/decisions/0254
 */
export class PortalLinks {
  readonly #deps: PortalLinksDeps;
  readonly #key: KeyObject;

  constructor(deps: PortalLinksDeps) {
    this.#deps = deps;
    this.#key = createSecretKey(createHmac('sha256', deps.internalSecret).update('portal links').digest());
  }

  async create(
    caller: Caller,
    { application, expiresInSeconds }: { application: string; expiresInSeconds: number },
  ): Promise<{ id: string; url: string; expiresAt: number }> {
    const { store, clock, random, origin } = this.#deps;
    const { namespaceId } = caller;
    const createdAt = clock.now();
    const issuedAt = Math.floor(createdAt / 1000);
    const id = LINK_ID_PREFIX + random.uuid();
    const expiresAt = (issuedAt + expiresInSeconds) * 1000;
    const token = await new SignJWT({ namespaceId, application })
      .setProtectedHeader({ alg: ALGORITHM })
      .setAudience(AUDIENCE)
      .setIssuedAt(issuedAt)
      .setExpirationTime(issuedAt + expiresInSeconds)
      .setJti(id)
      .sign(this.#key);
    await store.add({
      ...{ jti: id, hostId: PORTAL_HOST_PREFIX + application, namespaceId },
      ...{ createdBy: caller.hostId, createdAt, expiresAt, revokedAt: null },
    });
    // Browsers do not send the fragment, so the token appears in no log and in no Referer header.
    return { id, url: `${origin()}/studio/portal#token=${TOKEN_PREFIX}${token}`, expiresAt };
  }

  /** Lists the links that work, newest first. */
  async list({ namespaceId }: Caller, application: string | undefined) {
    const links = await this.#linksOf(namespaceId, application);
    return links.map(({ jti, hostId, createdBy, createdAt, expiresAt }) => ({
      ...{ id: jti, application: hostId.slice(PORTAL_HOST_PREFIX.length) },
      ...{ createdBy, createdAt, expiresAt },
    }));
  }

  /** Revokes one link or all links of an application. Returns the number of revoked links. */
  async revoke(
    { namespaceId }: Caller,
    { id, application }: { id?: string | undefined; application?: string | undefined },
  ): Promise<number> {
    const links = await this.#linksOf(namespaceId, application);
    const found = id === undefined ? links : links.filter(({ jti }) => jti === id);
    if (id !== undefined && found.length === 0)
      throw new PlatformError('NOT_FOUND', 'There is no such link, or it has expired or was revoked.');
    await this.#deps.revocations.revokeTokens(found.map(({ jti, expiresAt }) => ({ id: jti, expiresAt })));
    return found.length;
  }

  /**
   * Authenticates a call with the token of a link. Returns undefined for any other token. Throws UNAUTHORIZED for an
   * invalid token, and RATE_LIMIT_EXCEEDED.
   */
  async authenticate(subject: Subject): Promise<PortalCaller | undefined> {
    const { revocations, requireFresh, limiter } = this.#deps;
    const header = authorizationOf(subject.rawHeaders);
    const token = typeof header === 'string' ? bearerToken(header) : undefined;
    if (!token?.startsWith(TOKEN_PREFIX)) return undefined;
    requireFresh();
    const claims = await this.#verify(token.slice(TOKEN_PREFIX.length));
    if (typeof claims === 'string') throw this.#refused(claims, subject);
    const { application, namespaceId, jti, exp } = claims;
    const hostId = PORTAL_HOST_PREFIX + application;
    if (revocations.isRevoked({ hostId, jti })) throw this.#refused('TOKEN_REVOKED', subject);
    const taken = await limiter.take(`${namespaceId}\n${application}`, MAX_CALLS_PER_MINUTE);
    if (!taken.allowed) throw rateLimited(MAX_CALLS_PER_MINUTE, taken.resetMs);
    const access = { roles: new Map([[namespaceId as string, 'editor' as const]]), scopes: null };
    return { hostId, namespaceId, application, access, kind: 'portal', jti, expiresAt: exp * 1000 };
  }

  async #verify(token: string): Promise<Claims | AuthFault> {
    if (!isCanonicalJwt(token)) return 'UNKNOWN_TOKEN';
    try {
      const { payload } = await jwtVerify(token, this.#key, {
        algorithms: [ALGORITHM],
        audience: AUDIENCE,
        currentDate: new Date(this.#deps.clock.now()),
        requiredClaims: ['exp', 'jti'],
      });
      const claims = Claims.safeParse(payload);
      return claims.success ? claims.data : 'JWT_CLAIMS_INVALID';
    } catch (error) {
      if (error instanceof errors.JWTExpired) return 'JWT_EXPIRED';
      if (error instanceof errors.JWSSignatureVerificationFailed) return 'JWT_SIGNATURE_INVALID';
      return 'UNKNOWN_TOKEN';
    }
  }

  #refused(reasonCode: AuthFault, { requestId, traceId, ip }: Subject): PlatformError {
    this.#deps.logger.diagnostic(
      {
        domain: 'auth',
        event: 'auth.failed',
        level: 'warn',
        reasonCode,
        message: `A call from ${ip} was refused: the link to a portal is not valid`,
        outcome: 'refused',
        evidence: { ip },
      },
      { requestId, traceId },
    );
    const message =
      reasonCode === 'JWT_EXPIRED'
        ? 'This link has expired. Ask for a new one.'
        : 'This link is not valid any more. Ask for a new one.';
    return new PlatformError('UNAUTHORIZED', message, { headers: { 'www-authenticate': 'Bearer' } });
  }

  async #linksOf(namespaceId: string, application: string | undefined): Promise<MintedTokenRecord[]> {
    const { store, clock } = this.#deps;
    const wanted = application === undefined ? undefined : PORTAL_HOST_PREFIX + application;
    const links: MintedTokenRecord[] = [];
    for (let before: string | undefined; ; ) {
      const range = { now: clock.now(), limit: PAGE, ...(before === undefined ? {} : { before }) };
      const page = await store.list(namespaceId, range);
      links.push(
        ...page.filter(
          ({ jti, hostId, revokedAt }) =>
            revokedAt === null &&
            jti.startsWith(LINK_ID_PREFIX) &&
            (wanted === undefined || hostId === wanted),
        ),
      );
      if (page.length < PAGE) return links;
      before = page.at(-1)!.jti;
    }
  }
}
