import type { JWTPayload } from 'jose';
import {
  type Caller,
  HostId,
  LIMITS,
  NamespaceId,
  OAUTH_HOST_PREFIX,
  type OAuthIssuer,
} from '../../contracts/index.ts';
import { PlatformError } from '../../kit/errors/errors.ts';
import type { Logger } from '../../kit/telemetry/logger.ts';
import type { Clock } from '../../kit/time/clock.ts';
import { createIssuerKeys } from './issuer-keys.ts';

/** Caller with a token of the issuer. Its host id is `oauth:<subject>`. */
export interface OAuthBearer extends Caller {
  /** Expiry in epoch ms. */
  expiresAt: number;
  /** Claims of the token that are texts or lists of texts. Roles refer to them. */
  claims: Readonly<Record<string, string | readonly string[]>>;
}

/** Reason for rejecting a token, logged as the `reasonCode` of a diagnostic event. */
export type OAuthFault =
  | 'UNKNOWN_TOKEN'
  | 'JWT_SIGNATURE_INVALID'
  | 'JWT_KEY_UNKNOWN'
  | 'JWT_EXPIRED'
  | 'JWT_NOT_ACTIVE'
  | 'JWT_CLAIMS_INVALID';

/** Error for a rejected token. The message contains the reason. */
export class OAuthRefusal extends PlatformError {
  readonly fault: OAuthFault;

  constructor(fault: OAuthFault, why: string, cause?: unknown) {
    super('UNAUTHORIZED', `The token is not accepted: ${why}.`, {
      headers: { 'www-authenticate': 'Bearer error="invalid_token"' },
      ...(cause === undefined ? {} : { cause }),
    });
    this.fault = fault;
  }
}

/**
 * Verifies an access token. Throws OAuthRefusal for an invalid token, and UPSTREAM_UNAVAILABLE while the issuer's keys
 * are unavailable.
 */
export type VerifyOAuth = (token: string) => Promise<OAuthBearer>;

export interface OAuthVerifierDeps {
  clock: Clock;
  logger: Logger;
}

/** Allowed signature algorithms. All are asymmetric, so that a public key can never be used as a shared secret. */
const ALGORITHMS = ['RS256', 'ES256'];

/**
 * Creates a verifier for access tokens of one issuer. Issuer and algorithm are checked first, so that unrelated tokens
 * cause no key requests. @spec Plugin routes 8; docs/plugins.md "Routes"
 */
export function createOAuthVerifier(issuer: OAuthIssuer, deps: OAuthVerifierDeps): VerifyOAuth {
  // jose is loaded only by services that verify OAuth tokens.
  let loaded: ReturnType<typeof load> | undefined;
  return async (token) => {
    if (token.length > LIMITS.tokenChars) throw new OAuthRefusal('UNKNOWN_TOKEN', 'it is too long');
    loaded ??= load(issuer, deps);
    return (await loaded)(token);
  };
}

async function load({ issuer, audience, jwksUri, namespaceClaim }: OAuthIssuer, deps: OAuthVerifierDeps) {
  const { decodeJwt, decodeProtectedHeader, errors, jwtVerify } = await import('jose');
  const keys = await createIssuerKeys({ jwksUri, ...deps });

  function requireIssuer(token: string): void {
    try {
      const { alg } = decodeProtectedHeader(token);
      if (ALGORITHMS.includes(alg ?? '') && decodeJwt(token).iss === issuer) return;
    } catch (error) {
      throw new OAuthRefusal('UNKNOWN_TOKEN', 'it is not a JWT', error);
    }
    throw new OAuthRefusal('UNKNOWN_TOKEN', `it is not an ${ALGORITHMS.join(' or ')} token of ${issuer}`);
  }

  function refusal(error: unknown): PlatformError {
    if (error instanceof PlatformError) return error;
    const why = error instanceof Error ? error.message : 'it cannot be read';
    return new OAuthRefusal(faultOf(error), why, error);
  }
  function faultOf(error: unknown): OAuthFault {
    if (error instanceof errors.JWSSignatureVerificationFailed) return 'JWT_SIGNATURE_INVALID';
    if (error instanceof errors.JWKSNoMatchingKey || error instanceof errors.JWKSMultipleMatchingKeys)
      return 'JWT_KEY_UNKNOWN';
    if (error instanceof errors.JWTExpired) return 'JWT_EXPIRED';
    if (error instanceof errors.JWTClaimValidationFailed)
      return error.claim === 'nbf' ? 'JWT_NOT_ACTIVE' : 'JWT_CLAIMS_INVALID';
    return error instanceof errors.JWTInvalid ? 'JWT_CLAIMS_INVALID' : 'UNKNOWN_TOKEN';
  }

  return async (token: string): Promise<OAuthBearer> => {
    requireIssuer(token);
    try {
      const { payload } = await jwtVerify(token, keys, {
        issuer,
        audience,
        algorithms: ALGORITHMS,
        clockTolerance: LIMITS.jwtClockToleranceSeconds,
        currentDate: new Date(deps.clock.now()),
        requiredClaims: ['exp', 'sub'],
      });
      return bearerOf(payload, namespaceClaim);
    } catch (error) {
      throw refusal(error);
    }
  };
}

function bearerOf(payload: JWTPayload, namespaceClaim: string): OAuthBearer {
  const claim = Object.hasOwn(payload, namespaceClaim) ? payload[namespaceClaim] : undefined;
  const namespaceId = NamespaceId.safeParse(claim);
  if (!namespaceId.success)
    throw new OAuthRefusal('JWT_CLAIMS_INVALID', `its claim "${namespaceClaim}" is not a namespace`);
  const { sub } = payload;
  const hostId = HostId.safeParse(
    typeof sub === 'string' && sub !== '' ? OAUTH_HOST_PREFIX + sub : undefined,
  );
  if (!hostId.success)
    throw new OAuthRefusal('JWT_CLAIMS_INVALID', 'its subject is not a valid header value');
  const expiresAt = (payload.exp! + LIMITS.jwtClockToleranceSeconds) * 1000;
  return { hostId: hostId.data, namespaceId: namespaceId.data, expiresAt, claims: textsOf(payload) };
}

function textsOf(payload: JWTPayload): OAuthBearer['claims'] {
  const isText = (value: unknown) => typeof value === 'string';
  const texts = Object.entries(payload).filter(
    ([, value]) => isText(value) || (Array.isArray(value) && value.every(isText)),
  );
  return Object.fromEntries(texts) as OAuthBearer['claims'];
}
