import { type Caller, NamespaceId, OAUTH_HOST_PREFIX, type OAuthIssuer } from '../../../contracts/index.ts';
import { PlatformError } from '../../../kit/errors.ts';
import type { Logger } from '../../../kit/logger.ts';

/** Whom a token of the issuer stands for. Throws UNAUTHORIZED with what is wrong with it. */
export type VerifyOAuth = (token: string) => Promise<Caller>;

const CLOCK_TOLERANCE_SECONDS = 5;
const TIMEOUT_MS = 5000;
/** Keys that an issuer rotates are fetched again, but not for every token that names an unknown one. */
const COOLDOWN_MS = 30_000;
const MAX_TOKEN_CHARS = 8192;

/**
 * Verifies access tokens of one configured issuer by its published keys. The algorithm is one of two with a
 * public key, whatever the token says, so that a public key cannot be taken for a shared secret.
 * @spec Plugin routes 8; docs/decisions.md "Route security"
 */
export function createOAuthVerifier(issuer: OAuthIssuer, logger: Logger): VerifyOAuth {
  let keys: ReturnType<typeof loadJose> | undefined;

  return async (token) => {
    if (token.length > MAX_TOKEN_CHARS) throw refused('it is too long');
    keys ??= loadJose(issuer);
    const { verify, isKeyFault } = await keys;
    try {
      return callerOf(await verify(token), issuer);
    } catch (error) {
      if (error instanceof PlatformError) throw error;
      if (isKeyFault(error)) {
        logger.warn(`The keys of ${issuer.issuer} cannot be fetched`, { error });
        throw new PlatformError(
          'UPSTREAM_UNAVAILABLE',
          'The issuer of this token cannot be asked for its keys; try again later.',
          { cause: error },
        );
      }
      throw refused(error instanceof Error ? error.message : 'it cannot be read', error);
    }
  };
}

/** jose is loaded by services that need it. */
async function loadJose({ issuer, audience, jwksUri }: OAuthIssuer) {
  const { createRemoteJWKSet, errors, jwtVerify } = await import('jose');
  const jwks = createRemoteJWKSet(new URL(jwksUri), {
    timeoutDuration: TIMEOUT_MS,
    cooldownDuration: COOLDOWN_MS,
  });
  const options = {
    issuer,
    audience,
    algorithms: ['RS256', 'ES256'],
    clockTolerance: CLOCK_TOLERANCE_SECONDS,
    requiredClaims: ['exp', 'sub'],
  };
  return {
    verify: async (token: string) =>
      (await jwtVerify(token, jwks, options)).payload as Record<string, unknown>,
    /** The fault is the issuer's, not the token's. */
    isKeyFault: (error: unknown): boolean =>
      !(error instanceof errors.JOSEError) ||
      error instanceof errors.JWKSTimeout ||
      error instanceof errors.JWKSInvalid ||
      error.code === 'ERR_JOSE_GENERIC',
  };
}

function callerOf(payload: Record<string, unknown>, { namespaceClaim }: OAuthIssuer): Caller {
  const namespace = NamespaceId.safeParse(payload[namespaceClaim]);
  if (!namespace.success) throw refused(`its claim "${namespaceClaim}" names no namespace`);
  return { hostId: `${OAUTH_HOST_PREFIX}${String(payload.sub)}`, namespaceId: namespace.data };
}

function refused(why: string, cause?: unknown): PlatformError {
  return new PlatformError('UNAUTHORIZED', `The token is not accepted: ${why}.`, {
    headers: { 'www-authenticate': 'Bearer error="invalid_token"' },
    ...(cause === undefined ? {} : { cause }),
  });
}
